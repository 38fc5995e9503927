// A click on the head of a column sorts the table by it: upwards, then downwards. Equal rows keep their order, and
// cells without a value stay below. A cell is compared by its data-value where it has one, else by its text.
"use strict";

function valueOf(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  return cell.textContent.trim() || null;
}

function compared(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function sortBy(head) {
  const table = head.closest("table");
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
  const keyed = Array.from(table.tBodies[0].rows, (row) => ({ row, key: valueOf(row, head.cellIndex) }));
  keyed.sort((one, other) => {
    if (one.key === null || other.key === null) return (one.key === null) - (other.key === null);
    return sign * compared(one.key, other.key);
  });
  table.tBodies[0].append(...keyed.map(({ row }) => row));
}

for (const head of document.querySelectorAll("thead th")) {
  head.querySelector("button").addEventListener("click", () => sortBy(head));
}
