"use strict";
(() => {
  const address = document.currentScript.dataset.events;
  const name = "kept " + location.pathname;
  let source = null;
  const folds = () => Array.from(document.querySelectorAll("details"));
  const reload = () => {
    sessionStorage.setItem(name, JSON.stringify({ y: scrollY, open: folds().map((each) => each.open) }));
    location.reload();
  };
  // hidden pages hold no connection: a browser opens only a few to one server
  const listen = () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (!source) {
      source = new EventSource(address);
      source.addEventListener("changed", reload);
    }
  };
  document.addEventListener("DOMContentLoaded", () => {
    const kept = JSON.parse(sessionStorage.getItem(name) || "null");
    sessionStorage.removeItem(name);
    if (kept) {
      folds().forEach((each, place) => { each.open = kept.open[place] ?? each.open; });
      scrollTo(0, kept.y);
    }
    document.addEventListener("visibilitychange", listen);
    listen();
  });
})();
