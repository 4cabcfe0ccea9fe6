// Everything works without this. A form with data-live="a b" is sent while somebody types, and what is inside the elements with the ids
// a and b is replaced by what the answer has there.
"use strict";
(() => {
  let timer = 0;
  let running = null;

  const refresh = async (form) => {
    running?.abort();
    const mine = (running = new AbortController());
    const url = new URL(form.action);
    url.search = new URLSearchParams(new FormData(form)).toString();
    try {
      const answer = await fetch(url, { signal: mine.signal, headers: { Accept: "text/html" } });
      // A session that has ended leads to another page; a server that is busy says so: then the form is there to be sent by hand.
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine.signal.aborted) return;
      for (const id of form.dataset.live.split(" ")) {
        const here = document.getElementById(id);
        const there = page.getElementById(id);
        if (here && there) here.replaceChildren(...there.childNodes);
      }
      for (const input of form.elements) {
        const there = input.id && page.getElementById(input.id);
        if (!there) continue;
        if (there.hasAttribute("aria-invalid")) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
      history.replaceState(null, "", url);
    } catch (error) {
      if (error.name !== "AbortError") console.warn(error);
    }
  };

  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (!form || !form.dataset.live) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, 120, form);
  });

  // Links under a result roll out what they lead to: the list of the page behind them.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-roll]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    const item = link.closest("li");
    const open = item.querySelector(".rolled");
    const wasHere = open && open.dataset.of === link.href;
    open?.remove();
    for (const other of item.querySelectorAll("a[data-roll]")) other.removeAttribute("aria-expanded");
    if (wasHere) return;
    try {
      const answer = await fetch(link.href, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const list = page.querySelector("#replicas, #results");
      if (!list) throw new Error("nothing to roll out");
      const rolled = document.createElement("div");
      rolled.className = "rolled";
      rolled.dataset.of = link.href;
      // What is rolled out has ids and live regions of its own page.
      for (const element of [list, ...list.querySelectorAll("[id]")]) element.removeAttribute("id");
      list.removeAttribute("aria-live");
      rolled.append(...list.childNodes);
      item.append(rolled);
      link.setAttribute("aria-expanded", "true");
    } catch {
      location.href = link.href;
    }
  });

  // "/" goes to the search box, as everywhere.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select")) return;
    const box = document.getElementById("q");
    if (!box) return;
    event.preventDefault();
    box.focus();
    box.select();
  });
})();
