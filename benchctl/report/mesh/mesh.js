"use strict";

// The arrow keys walk through a matrix, of which only one cell is a stop of the tabulator.
for (const table of document.querySelectorAll(".matrix")) {
  const grid = [...table.tBodies[0].rows].map((row) =>
    [...row.cells].slice(1).map((cell) => cell.querySelector("a")));
  const links = grid.flat().filter(Boolean);
  const readout = document.querySelector(".readout");
  const first = readout?.textContent;
  for (const link of links.slice(1)) link.tabIndex = -1;
  const tell = ({ target }) => {
    const link = target.closest("a");
    if (readout) readout.textContent = link ? link.title : first;
  };
  table.addEventListener("focusin", (event) => {
    const link = event.target.closest("td a");
    if (!link) return;
    for (const one of links) one.tabIndex = -1;
    link.tabIndex = 0;
    tell(event);
  });
  table.addEventListener("pointerover", tell);
  table.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    let row = grid.findIndex((cells) => cells.includes(event.target));
    if (row < 0) return;
    event.preventDefault();
    let column = grid[row].indexOf(event.target);
    do {
      row += step[0];
      column += step[1];
    } while (grid[row]?.[column] === null);
    grid[row]?.[column]?.focus();
  });
}

// Where a drawing is wider than the window, its newest part is seen first.
for (const chart of document.querySelectorAll(".chart")) chart.scrollLeft = chart.scrollWidth;

// How old the page is, which only the reader's clock knows.
for (const time of document.querySelectorAll("header time")) {
  const hours = (Date.now() - Date.parse(time.dateTime)) / 3600e3;
  const days = Math.floor(hours / 24);
  const age = document.createElement("span");
  age.className = days < 2 ? "age" : "age late";
  age.textContent = hours < 1 ? " (less than an hour ago)"
    : days < 2 ? ` (${Math.floor(hours)} h ago)` : ` (${days} days ago)`;
  time.after(age);
}
