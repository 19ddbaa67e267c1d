"use strict";
// The table of a page of totals: a click on a title sorts by its column, and a text filters the rows.
const table = document.querySelector("table"), body = table.tBodies[0], rows = [...body.rows];
const filter = document.getElementById("filter"), shown = document.getElementById("shown");
const value = (row, at) => {
  const cell = row.cells[at], number = cell.dataset.n;
  return number === undefined ? cell.textContent : number === "" ? -Infinity : Number(number);
};
const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
function sort(title, at) {
  const down = title.getAttribute("aria-sort") === "ascending"
    || (title.getAttribute("aria-sort") === null && title.classList.contains("n"));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  title.setAttribute("aria-sort", down ? "descending" : "ascending");
  rows.sort((a, b) => (down ? -1 : 1) * compare(value(a, at), value(b, at)));
  body.append(...rows);
}
function choose() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    count += !row.hidden;
  }
  shown.textContent = `${count} of ${rows.length} rows`;
}
[...table.tHead.rows[0].cells].forEach((title, at) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = title.textContent;
  button.addEventListener("click", () => sort(title, at));
  title.replaceChildren(button);
});
document.getElementById("tools").hidden = false;
filter.addEventListener("input", choose);
choose();
