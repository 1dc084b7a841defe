// Reads an answer of /grafana/query on stdin as Grafana's panels do: each entry becomes a data frame, and frames that are
// drawn together are joined on their times. Prints both as JSON.
"use strict";

// The library looks for feature toggles of the page that it runs in.
globalThis.window = {};

const { readFileSync } = require("node:fs");
const { outerJoinDataFrames, toDataFrame } = require("@grafana/data");

const described = (field) => ({
  name: field.name,
  type: field.type,
  unit: field.config.unit ?? null,
  values: field.values,
});

const frames = JSON.parse(readFileSync(0, "utf8")).map(toDataFrame);
const joined = frames.length > 1 ? outerJoinDataFrames({ frames }) : null;
process.stdout.write(
  JSON.stringify({
    frames: frames.map((frame) => ({
      name: frame.name ?? null,
      refId: frame.refId ?? null,
      notices: (frame.meta?.notices ?? []).map((notice) => notice.text),
      fields: frame.fields.map(described),
    })),
    joined: joined && joined.fields.map(described),
  })
);
