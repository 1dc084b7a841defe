// Keeps the status page current. Without this script the page reloads itself instead.
"use strict";

(() => {
  const PERIOD_MS = 5000;
  const LIMIT_MS = 4000;
  const notice = document.getElementById("update");
  let current = new Date();
  let timer;
  let updating = false;

  // Changes what differs and leaves every other node as it is: focus, scrolling and what is unfolded stay.
  const morph = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
      old.replaceWith(fresh);
    } else if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
    } else {
      for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
      for (const { name, value } of fresh.attributes) {
        if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      }
      // A list of its own: a node that moves over is no longer among the fresh ones.
      const children = [...fresh.childNodes];
      children.forEach((child, position) => {
        const present = old.childNodes[position];
        if (present) morph(present, child);
        else old.append(child);
      });
      while (old.childNodes.length > children.length) old.lastChild.remove();
    }
  };

  const keepingSelection = (change) => {
    const selection = getSelection();
    const { anchorNode, anchorOffset, focusNode, focusOffset, isCollapsed } = selection;
    change();
    if (isCollapsed || !anchorNode.isConnected || !focusNode.isConnected) return;
    const within = (node, offset) => Math.min(offset, node.data?.length ?? node.childNodes.length);
    selection.setBaseAndExtent(
      anchorNode, within(anchorNode, anchorOffset), focusNode, within(focusNode, focusOffset),
    );
  };

  const tell = (reason) => {
    const time = `${current.toISOString().slice(11, 19)} UTC`;
    const sentence = `Not updated since ${time}: ${reason}. Everything below is as it was then.`;
    const seconds = Math.round((Date.now() - current) / 1000);
    const age = seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
    // Only a new sentence is read out; the age, which changes all the time, is for the eyes.
    if (notice.firstChild?.data !== sentence) notice.replaceChildren(sentence, document.createElement("span"));
    notice.lastChild.setAttribute("aria-hidden", "true");
    notice.lastChild.textContent = ` (${age} ago)`;
    notice.hidden = false;
  };

  const load = async () => {
    // Built from its parts: a page opened with credentials in its address may not fetch that address.
    const address = location.origin + location.pathname + location.search;
    const response = await fetch(address, {
      headers: { Accept: "text/html" },
      cache: "no-store",
      signal: AbortSignal.timeout(LIMIT_MS),
    }).catch(() => null);
    if (!response) throw new Error("the exporter does not answer");
    if (response.status === 401) throw new Error("the exporter asks for credentials; reload the page");
    if (!response.ok) throw new Error(`the exporter answers with status ${response.status}`);
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!fresh.querySelector("main h1")) throw new Error("something else than the exporter answers");
    return fresh;
  };

  const update = async () => {
    clearTimeout(timer);
    if (updating || document.hidden) return;
    updating = true;
    try {
      const fresh = await load();
      keepingSelection(() => morph(document.querySelector("main"), fresh.querySelector("main")));
      document.title = fresh.title;
      current = new Date();
      notice.hidden = true;
      notice.replaceChildren();
    } catch (error) {
      tell(error.message);
    }
    updating = false;
    timer = setTimeout(update, PERIOD_MS);
  };

  document.addEventListener("visibilitychange", update);
  timer = setTimeout(update, PERIOD_MS);
})();
