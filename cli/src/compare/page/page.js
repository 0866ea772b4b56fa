"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const panes = document.getElementById("panes");
const choose = document.getElementById("choose");
// Rows by the line of vISA that they came from.
let origins = new Map();
let lit = 0, pinned = 0;

function pane(title, note, rows, left) {
  const section = document.createElement("section");
  section.className = "pane";
  const head = document.createElement("h3");
  head.append(title + " ");
  head.append(Object.assign(document.createElement("span"), { textContent: note }));
  const code = document.createElement("div");
  code.className = "code";
  for (const [line, text] of rows) {
    const row = document.createElement("div");
    if (line > 0) {
      row.dataset.l = line;
      if (!origins.has(line)) origins.set(line, []);
      origins.get(line).push(row);
    }
    const number = document.createElement("b");
    number.textContent = line > 0 ? line : "";
    row.append(number, text);
    code.append(row);
  }
  if (left > 0) {
    code.append(Object.assign(document.createElement("p"), { textContent: `${left} more lines are left out` }));
  }
  section.append(head, code);
  panes.append(section);
}

function mark(line, name, yes) {
  for (const row of origins.get(line) || []) row.classList.toggle(name, yes);
}

function light(line) {
  if (line === lit) return;
  mark(lit, "on", false);
  lit = line;
  mark(lit, "on", true);
}

function pin(line, except) {
  mark(pinned, "pin", false);
  pinned = line;
  mark(pinned, "pin", true);
  const seen = new Set([except]);
  for (const row of origins.get(line) || []) {
    const code = row.parentElement;
    if (seen.has(code)) continue;
    seen.add(code);
    code.scrollTop = row.offsetTop - code.offsetTop - code.clientHeight / 2;
  }
}

function show() {
  panes.replaceChildren();
  origins = new Map();
  lit = 0;
  pane("vISA", "", data.visa.rows, data.visa.left);
  for (const box of choose.querySelectorAll("input:checked")) {
    const strategy = data.strategies[box.value];
    const ssa = data.listings[strategy.ssa], machine = data.listings[strategy.machine];
    pane("SSA", `${strategy.name}, for ${strategy.launches}`, ssa.rows, ssa.left);
    pane("Machine code", strategy.name, machine.rows, machine.left);
  }
  if (pinned > 0) pin(pinned, null);
}

data.strategies.forEach((strategy, index) => {
  const label = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type: "checkbox", value: index, checked: index < 2 });
  box.addEventListener("change", show);
  label.append(box, " " + strategy.name);
  choose.append(label);
});

const line = (event) => Number(event.target.closest("[data-l]")?.dataset.l || 0);
panes.addEventListener("mouseover", (event) => light(line(event)));
panes.addEventListener("mouseleave", () => light(0));
panes.addEventListener("click", (event) => {
  const at = line(event);
  pin(at === pinned ? 0 : at, event.target.closest(".code"));
  history.replaceState(null, "", pinned > 0 ? "#line-" + pinned : "#");
});

// A link to a line shows it pinned.
pinned = Number((location.hash.match(/^#line-(\d+)$/) || [])[1] || 0);
show();
if (pinned > 0) panes.scrollIntoView({ block: "nearest" });
