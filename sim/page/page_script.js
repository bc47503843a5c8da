// SPDX-License-Identifier: BSD-3-Clause
// The interactive parts of a page: tips at the pointer, tables sorted by a click, zoomed timelines.
// The page is complete without it; tips are then those of the browser.
"use strict";
(() => {
  const make = (tag, parent, text) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  };

  // ---- tips: of the innermost element under the pointer that has a title
  const tip = make("div", document.body);
  tip.id = "tip";
  tip.hidden = true;
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    const title = svg.firstElementChild;
    svg.setAttribute("aria-label", title.textContent);
    title.remove(); // it names the whole picture, which needs no tip
  }
  const tips = new WeakMap();
  const titleOf = (node) => {
    for (; node && node.nodeType === 1; node = node.parentNode) {
      if (tips.has(node)) return tips.get(node);
      const title = [...node.children].find((child) => child.tagName === "title");
      if (title && node.namespaceURI.endsWith("svg")) {
        tips.set(node, title.textContent);
        title.remove(); // otherwise the browser shows it, too
        return tips.get(node);
      }
    }
    return "";
  };
  document.addEventListener("pointermove", (event) => {
    const text = titleOf(event.target);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const below = event.clientY + 18 + box.height < innerHeight;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = event.clientY + (below ? 18 : -box.height - 10) + "px";
  });
  document.addEventListener("pointerleave", () => (tip.hidden = true));

  // ---- tables: sorted by a cell's data-order if it has one, else by its text
  // Figures without an order come last in both directions.
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.hasAttribute("data-order")) return BigInt(cell.dataset.order);
    return cell.classList.contains("figure") ? null : cell.textContent;
  };
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return a < b ? -sign : a > b ? sign : 0;
  };
  const sortBy = (table, head, column) => {
    const down = head.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "ascending" : "descending");
    const sign = down ? 1 : -1;
    const body = table.tBodies[0];
    const rows = [...body.rows];
    rows.sort((a, b) => compare(keyOf(a, column), keyOf(b, column), sign));
    body.append(...rows);
  };
  for (const table of document.querySelectorAll("table")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.classList.add("sortable");
      head.tabIndex = 0;
      head.addEventListener("click", () => sortBy(table, head, column));
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter") sortBy(table, head, column);
      });
    });
  }

  // ---- timelines: zooming changes the viewBox of the plot and draws fitting ticks
  const units = [[1e12, "s"], [1e9, "ms"], [1e6, "us"], [1e3, "ns"], [1, "ps"]];
  const tickStep = (span) => {
    const power = 10 ** Math.floor(Math.log10(Math.max(span / 8, 1)));
    return [1, 2, 5, 10].map((digit) => digit * power).find((step) => span / step <= 8);
  };
  const zoomable = (svg) => {
    const plot = svg.querySelector(".plot");
    const axis = svg.querySelector(".axis");
    const [, , width, height] = plot.getAttribute("viewBox").split(" ").map(Number);
    const left = Number(plot.getAttribute("x"));
    const end = Number(svg.dataset.end);
    const line = axis.querySelector("line");
    const top = line.getAttribute("y1");
    const bottom = line.getAttribute("y2");
    const whole = axis.innerHTML;
    let from = 0;
    let to = 1;
    const addSvg = (tag, attributes, text) => {
      const node = document.createElementNS(svg.namespaceURI, tag);
      for (const name in attributes) node.setAttribute(name, attributes[name]);
      if (text !== undefined) node.textContent = text;
      axis.append(node);
    };
    const drawTicks = () => {
      const step = tickStep((to - from) * end);
      const [size, unit] = units.find(([each]) => step % each === 0) || [1, "ps"];
      axis.textContent = "";
      for (let at = Math.ceil((from * end) / step) * step; at <= to * end; at += step) {
        const x = left + (width * (at / end - from)) / (to - from);
        addSvg("line", { x1: x, x2: x, y1: top, y2: bottom });
        const y = Number(bottom) + 16;
        addSvg("text", { x, y, "text-anchor": "middle" }, at / size + " " + unit);
      }
    };
    const show = (begin, stop) => {
      const span = Math.min(1, Math.max(stop - begin, 1e-5));
      from = Math.min(Math.max(0, begin), 1 - span);
      to = from + span;
      plot.setAttribute("viewBox", `${from * width} 0 ${span * width} ${height}`);
      svg.classList.toggle("zoomed", span < 1);
      if (span < 1) drawTicks();
      else axis.innerHTML = whole;
    };
    const zoom = (factor, around) =>
      show(around - (around - from) * factor, around + (to - around) * factor);

    const bar = document.createElement("div");
    bar.className = "zoom";
    const buttons = [
      ["+", "Zoom in", () => zoom(0.5, (from + to) / 2)],
      ["\u2212", "Zoom out", () => zoom(2, (from + to) / 2)],
      ["\u2190", "Earlier", () => show(from - (to - from) / 4, to - (to - from) / 4)],
      ["\u2192", "Later", () => show(from + (to - from) / 4, to + (to - from) / 4)],
      ["All", "Show all", () => show(0, 1)],
    ];
    for (const [text, name, act] of buttons) {
      const button = make("button", bar, text);
      button.setAttribute("aria-label", name);
      button.addEventListener("click", act);
    }
    make("span", bar, "or drag over the picture; double click for all");
    svg.parentNode.before(bar);

    const shareAt = (event) => {
      const box = plot.getBoundingClientRect();
      const drawn = svg.getBoundingClientRect();
      const scale = drawn.width / svg.viewBox.baseVal.width;
      const x = (event.clientX - drawn.left) / scale - left;
      return box.width ? from + (Math.min(Math.max(x, 0), width) / width) * (to - from) : from;
    };
    let began = null;
    svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) began = shareAt(event);
    });
    svg.addEventListener("pointerup", (event) => {
      if (began === null) return;
      const ended = shareAt(event);
      if (Math.abs(ended - began) > 0.01 * (to - from))
        show(Math.min(began, ended), Math.max(began, ended));
      began = null;
    });
    svg.addEventListener("dblclick", () => show(0, 1));
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, shareAt(event));
    }, { passive: false });
  };
  document.querySelectorAll("svg.timeline").forEach(zoomable);
})();
