// Reads {panel, frames} on stdin, each frame as {refId, label, rows}, and prints what the table panel shows: its columns by
// their titles. Frames are shaped as Prometheus answers queries in the table format. Prints the ids of all units as well.
"use strict";

globalThis.window = {};
Object.defineProperty(globalThis, "navigator", { value: { language: "en", languages: ["en"] } });

const { readFileSync } = require("node:fs");
const data = require("@grafana/data");

const used = ["joinByFieldTransformer", "filterFieldsByNameTransformer", "organizeFieldsTransformer"];
data.standardTransformersRegistry.setInit(() =>
  used.map((name) => data.standardTransformers[name]).map((transformation) => ({ id: transformation.id, transformation }))
);

const frameOf = ({ refId, label, rows }) =>
  data.toDataFrame({
    refId,
    fields: [
      { name: "Time", type: data.FieldType.time, values: rows.map(() => 0) },
      { name: label, type: data.FieldType.string, values: rows.map((row) => row[0]) },
      { name: `Value #${refId}`, type: data.FieldType.number, values: rows.map((row) => row[1]) },
    ],
  });

const { panel, frames } = JSON.parse(readFileSync(0, "utf8"));
data.transformDataFrame(panel.transformations, frames.map(frameOf)).subscribe(([table]) => {
  const columns = table.fields.map((field) => [field.config.displayName ?? field.name, field.values]);
  const units = data.getValueFormats().flatMap((category) => category.submenu.map((unit) => unit.value));
  process.stdout.write(JSON.stringify({ columns, units }));
});
