#include "host/run/watch_page.h"

namespace gpusim::host {

// It asks its own address for /state twice a second, and nothing else.
const char* const kWatchPage = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; connect-src 'self';
 style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>gpusim runs</title>
<style>
:root { color-scheme: light dark; --ground: #fff; --line: #d8dee5; --text: #1c2530;
  --soft: #56626f; --mark: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161b; --line: #323b45;
  --text: #e4e9ee; --soft: #9eabb8; --mark: #56aee6; } }
body { margin: 0 auto; padding: 1.25rem clamp(0.9rem, 3vw, 2rem); max-width: 60rem;
  background: var(--ground); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; margin: 0.3rem 0; }
#answer { font-size: 1.08rem; }
progress { width: 100%; height: 0.8rem; accent-color: var(--mark); }
svg { display: block; width: 100%; height: 16rem; margin-top: 1rem; }
svg text { font-size: 12px; fill: var(--soft); }
svg line { stroke: var(--line); }
svg path { fill: none; stroke: var(--mark); stroke-width: 2; }
p { margin: 0.4rem 0; } .soft { color: var(--soft); }
</style>
</head>
<body>
<h1 id="program">gpusim</h1>
<p id="answer">The run has not said anything yet.</p>
<progress id="cores" max="1" value="0" aria-label="cores that finished"></progress>
<p id="end" class="soft"></p>
<svg id="speed" role="img" aria-label="Instructions per second over time"></svg>
<p class="soft">Guest instructions per second of all cores, over seconds of this machine.</p>
<script>
"use strict";
const at = (id) => document.getElementById(id);
const si = (v) => {
  for (const [scale, unit] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]])
    if (v >= scale) return (v / scale).toPrecision(3) + unit;
  return String(Math.round(v));
};
const time = (s) => s < 60 ? `${Math.round(s)} s` : s < 3600
  ? `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`
  : `${Math.floor(s / 3600)} h ${Math.floor(s / 60 % 60)} min`;
const step = (most) => {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  return [1, 2, 5, 10].map((m) => m * power).find((m) => m >= most / 4);
};
function draw(samples) {
  const svg = at("speed"), width = Math.max(280, svg.clientWidth), height = 256;
  const points = samples.slice(1).map(([s, n], i) =>
    [s, (n - samples[i][1]) / Math.max(1e-9, s - samples[i][0])]);
  if (!points.length) return;
  const top = Math.max(1, ...points.map((p) => p[1])), by = step(top);
  const high = Math.ceil(top / by) * by, end = points[points.length - 1][0];
  const x = (s) => 64 + (width - 84) * s / end, y = (v) => 226 - 206 * v / high;
  let out = "";
  for (let v = 0; v <= high * 1.001; v += by)
    out += `<line x1="64" x2="${width - 20}" y1="${y(v)}" y2="${y(v)}"/>` +
      `<text x="58" y="${y(v) + 4}" text-anchor="end">${si(v)}</text>`;
  for (const share of [0, 0.5, 1])
    out += `<text x="${x(share * end)}" y="246" text-anchor="middle">${time(share * end)}</text>`;
  const path = points.map((p) => `${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join("L");
  out += `<path d="M${path}"/>`;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.innerHTML = out;
}
function show(state) {
  document.title = `${state.finished} of ${state.cores}: ${state.program}`;
  at("program").textContent = state.program;
  const last = state.samples.slice(-2);
  const speed = last.length < 2 ? 0 : (last[1][1] - last[0][1]) / (last[1][0] - last[0][0]);
  const done = state.most_instructions ? state.instructions / state.most_instructions
    : state.started ? state.finished / state.started : 0;
  let text = `${si(state.instructions)} instructions in ${time(state.seconds)}, ` +
    `${si(speed)} per second; ${state.finished.toLocaleString("en-US")} of ` +
    `${state.started.toLocaleString("en-US")} cores that started have finished`;
  if (!state.ended && done > 0.02)
    text += `; about ${time(state.seconds * (1 - done) / done)} left`;
  at("answer").textContent = text + ".";
  at("cores").value = done;
  if (state.ended) at("end").textContent = `The run has ended with status ${state.exit_status}.`;
  draw(state.samples);
}
async function look() {
  try {
    const state = await (await fetch("state")).json();
    show(state);
    const root = document.documentElement.dataset;
    root.looks = Number(root.looks || 0) + 1;
    if (state.ended) return;
  } catch {
    at("end").textContent = "gpusim does not answer any more: the run has ended.";
    return;
  }
  setTimeout(look, 500);
}
look();
</script>
</body>
</html>
)html";

}  // namespace gpusim::host
