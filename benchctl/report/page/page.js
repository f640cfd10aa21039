"use strict";

// A click on a heading sorts by its column: numbers as numbers, what is none of them last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const rows = [...body.rows].map((row) => {
        const { dataset, textContent } = row.cells[place];
        return { row, number: "n" in dataset ? Number(dataset.n) : NaN, text: textContent };
      });
      rows.sort((a, b) => {
        if (isNaN(a.number) !== isNaN(b.number)) return isNaN(a.number) ? 1 : -1;
        if (!isNaN(a.number)) return sign * (a.number === b.number ? 0 : a.number - b.number);
        return sign * a.text.localeCompare(b.text, undefined, { numeric: true });
      });
      body.append(...rows.map(({ row }) => row));
    });
  });
}

// On paper nothing is folded but what would fill many sheets.
const folded = [];
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details:not([open], .long)")) {
    folded.push(one);
    one.open = true;
  }
});
addEventListener("afterprint", () => {
  for (const one of folded.splice(0)) one.open = false;
});

// The marks of a drawing have titles: a pointer, a finger and the arrow keys read them below it.
function readable(drawing) {
  const marks = [...drawing.querySelectorAll(":scope > * > title")].map((one) => one.parentNode);
  if (!marks.length) return;
  const readout = document.createElement("p");
  readout.className = "note readout";
  readout.setAttribute("aria-live", "polite");
  const first = "Point at a mark, or use the arrow keys, to read its value.";
  readout.textContent = first;
  drawing.parentNode.after(readout);
  drawing.setAttribute("tabindex", "0");
  let chosen;
  const choose = (mark) => {
    chosen?.classList.remove("chosen");
    chosen = mark;
    chosen?.classList.add("chosen");
    readout.textContent = chosen ? chosen.querySelector("title").textContent : first;
  };
  const away = (mark, { clientX: x, clientY: y }) => {
    const { left, right, top, bottom } = mark.getBoundingClientRect();
    return Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
  };
  const point = (event) =>
    choose(marks.reduce((a, b) => (away(b, event) < away(a, event) ? b : a)));
  for (const kind of ["pointermove", "pointerdown"]) drawing.addEventListener(kind, point);
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") choose();
    if (!step) return;
    event.preventDefault();
    const place = chosen ? marks.indexOf(chosen) + step : step > 0 ? 0 : -1;
    choose(marks.at(place % marks.length));
  });
}

for (const drawing of document.querySelectorAll(".chart > svg")) {
  if (!drawing.closest("figure").querySelector("script")) readable(drawing);
}

// A chart takes the place of its drawing on the screen; on paper the drawing stays.
const BACK = { stroke: "transparent", width: 0, points: { show: false }, class: "edge" };
const colour = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// Of what is of no line in particular, the colour of text.
const inkOf = (name) => colour(name === "theory" ? "ink" : name);

function unpacked(list) {
  if (typeof list[2] !== "string") return list;
  const [low, step, text] = list;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 2 }, (_, place) => {
    const value = view.getUint16(2 * place, true);
    return value === 0xffff ? null : low + step * value;
  });
}

const digits = (value) => (value == null ? "–" : String(Number(value.toPrecision(4))));

function nearest(axis, value) {
  if (value == null) return "–";
  const found = axis.ticks.find(([at]) => Math.abs(at - value) <= 1e-3 * Math.abs(value));
  return found ? found[1] : digits(value);
}

function axisOf(axis, more) {
  const named = axis.ticks.length && {
    splits: () => axis.ticks.map(([at]) => at),
    values: () => axis.ticks.map(([, text]) => text),
    filter: (_, splits) => splits,
  };
  return {
    label: axis.label, stroke: colour("ink"), font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif", labelSize: 18, size: 34,
    grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 },
    ...named, ...more,
  };
}

function seriesOf(panel, line, title) {
  const stroke = inkOf(line.colour);
  const role = line.role;
  const marked = role === "reported" || (panel.marks && role === "measured");
  const fill = role === "reported" ? colour("paper") : stroke;
  return {
    label: /^[\d.]/.test(line.name) ? `${title} ${line.name}` : line.name || panel.y.label,
    stroke, width: 1.5, points: { show: marked, size: 7, stroke, fill }, value: (_, value) => digits(value),
    dash: role === "expected" ? [6, 4] : line.more ? [2, 3] : undefined,
    ...((role === "reported" || role === "not valid") && { paths: () => null }),
  };
}

// Events are dashed lines with their words, intervals bars; what is not valid has crosses.
function drawn(chart, panel, series) {
  const { ctx, bbox } = chart;
  const one = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = `${11 * one}px system-ui, sans-serif`;
  ctx.lineWidth = one;
  ctx.textAlign = "left";
  const free = [-Infinity, -Infinity, -Infinity];
  for (const [at, word, of] of panel.events) {
    const x = chart.valToPos(at, "x", true);
    ctx.strokeStyle = ctx.fillStyle = inkOf(of);
    ctx.setLineDash([3 * one, 3 * one]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    // A word stands where there is room for it; the table of events has all.
    const row = free.findIndex((end) => end < x);
    if (!word || row < 0) continue;
    let shown = word;
    const room = bbox.left + bbox.width - x - 3 * one;
    for (const words = word.split(" "); words.length && ctx.measureText(shown).width > room;) {
      words.pop();
      shown = `${words.join(" ")}…`;
    }
    free[row] = x + ctx.measureText(shown).width + 6 * one;
    ctx.fillText(shown, x + 3 * one, bbox.top + (11 + 11 * row) * one);
  }
  ctx.setLineDash([]);
  series.forEach((place, index) => {
    const line = panel.lines[index];
    if (!chart.series[place].show) return;
    ctx.strokeStyle = inkOf(line.role === "not valid" ? "theory" : line.colour);
    chart.data[place].forEach((value, i) => {
      if (value == null) return;
      const x = chart.valToPos(chart.data[0][i], "x", true);
      const height = (of) => chart.valToPos(of, "y", true);
      ctx.beginPath();
      if (line.role === "not valid") {
        for (const sign of [1, -1]) {
          ctx.moveTo(x - 5 * one, height(value) - sign * 5 * one);
          ctx.lineTo(x + 5 * one, height(value) + sign * 5 * one);
        }
      } else if (line.low && panel.marks && chart.data[place + 1][i] != null) {
        ctx.moveTo(x, height(chart.data[place + 1][i]));
        ctx.lineTo(x, height(chart.data[place + 2][i]));
      }
      ctx.stroke();
    });
  });
  ctx.restore();
}

function chartOf(place, data, places, panel, last, key) {
  const series = [{ label: data.x.label, value: (_, value) => nearest(data.x, value) }];
  const tables = [], bands = [], lines = [], edges = new Set();
  for (const line of panel.lines) {
    const xs = places[line.x];
    lines.push(series.length);
    series.push(seriesOf(panel, line, data.series));
    tables.push([xs, unpacked(line.y)]);
    if (line.low) {
      const low = series.length;
      edges.add(low).add(low + 1);
      if (!panel.marks) bands.push({ series: [low + 1, low], fill: `${series[low - 1].stroke}33` });
      series.push(BACK, BACK);
      tables.push([xs, unpacked(line.low)], [xs, unpacked(line.high)]);
    }
  }
  // Zoomed in, the y-axis shows what is in sight; otherwise all, as the drawing does.
  const ranges = {
    x: (u, low, high) => {
      const xs = u.data[0];
      u.zoomed = low !== null && (low > xs[0] || high < xs[xs.length - 1]);
      return u.zoomed ? [low, high] : data.x.ends;
    },
    y: (u, low, high) => {
      if (!u.zoomed || low === null) return panel.y.ends;
      const room = (high - low || Math.abs(high) || 1) / 20;
      return panel.y.log ? [low, high] : [panel.y.ends[0] === 0 ? 0 : low - room, high + room];
    },
  };
  const scale = (name, axis) => ({ time: false, distr: axis.log ? 3 : 1, range: ranges[name] });
  const chart = new uPlot(
    {
      width: place.clientWidth, height: last ? 240 : 205, series, bands,
      scales: { x: scale("x", data.x), y: scale("y", panel.y) },
      axes: [axisOf(data.x, last ? {} : { label: null }), axisOf(panel.y, { size: 62 })],
      cursor: {
        sync: { key, scales: ["x", null] }, y: false,
        points: { size: (_, index) => (edges.has(index) ? 0 : 8) },
      },
      legend: { markers: { width: 2 } },
      hooks: {
        draw: [(u) => drawn(u, panel, lines)],
        setSeries: [(u, index, { show }) => {
          if (show === undefined || !edges.has(index + 1)) return;
          u.setSeries(index + 1, { show }, false);
          u.setSeries(index + 2, { show }, false);
        }],
      },
    },
    uPlot.join(tables),
    place,
  );
  // A finger across the chart zooms as a mouse does, a double tap shows all; up and down scrolls.
  let begin;
  const send = (kind, { clientX, clientY }) => {
    // uPlot ignores a move of no pixel.
    const event = new MouseEvent(kind, { clientX, clientY, movementX: 1, bubbles: true });
    chart.over.dispatchEvent(event);
  };
  const fingers = {
    touchstart: (finger) => send("mousedown", (begin = finger)),
    touchmove: (finger) => send("mousemove", finger),
    touchend: (finger) => send("mouseup", finger),
    touchcancel: () => ["mousemove", "mouseup"].forEach((kind) => send(kind, begin)),
  };
  for (const [name, take] of Object.entries(fingers)) {
    const options = { passive: true };
    chart.over.addEventListener(name, ({ changedTouches: [one] }) => take(one), options);
  }
  return chart;
}

const charts = new Map();

function draw(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const place = document.createElement("div");
  place.className = "screen";
  figure.classList.add("live");
  figure.querySelector(".chart").append(place);
  const places = data.xs.map(unpacked);
  charts.set(figure, data.panels.map((panel, index) =>
    chartOf(place, data, places, panel, index === data.panels.length - 1, figure.id)));
}

function remove(figure) {
  for (const chart of charts.get(figure)) chart.destroy();
  figure.querySelector(".screen").remove();
  charts.delete(figure);
}

const figures = [...document.querySelectorAll("figure")].filter((one) =>
  one.querySelector("script"));
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting && !charts.has(target)) draw(target);
  }
}, { rootMargin: "400px" });
for (const figure of figures) seen.observe(figure);

addEventListener("resize", () => {
  for (const [figure, panels] of charts) {
    const width = figure.querySelector(".screen").clientWidth;
    for (const chart of panels) chart.setSize({ width, height: chart.height });
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const figure of [...charts.keys()]) {
    remove(figure);
    draw(figure);
  }
});
