// Draws the figures of a page: line charts, stacked areas, bars, heat maps and tables, from the
// descriptions in #gpusim-figures (device_sim/base/page.h says what they hold). No libraries, no network.
"use strict";
(() => {
  const THEMES = {
    light: {
      ground: "#ffffff", text: "#1c2530", soft: "#56626f", grid: "#e3e8ed", axis: "#8793a0",
      // Okabe and Ito's colours, told apart with any colour vision; yellow darkened for white paper.
      series: ["#0072b2", "#d55e00", "#009e73", "#b8548e", "#c98a00", "#3d9bd1", "#4d4d4d", "#8a7a00"],
      reference: "#7b8794", idle: "#b9c2cb", none: "#eef1f4",
    },
    dark: {
      ground: "#12161b", text: "#e4e9ee", soft: "#9eabb8", grid: "#2a323b", axis: "#77828e",
      series: ["#56aee6", "#ff8d4f", "#2bc79a", "#e59bc4", "#f0b840", "#9bd6f7", "#c8ced6", "#e6dd6a"],
      reference: "#8d99a6", idle: "#4a545f", none: "#222a32",
    },
  };
  // Cividis, sampled: from dark blue over grey to yellow, made for colour-blind readers.
  const RAMP = [[0, 32, 77], [0, 51, 111], [57, 72, 107], [87, 92, 109], [112, 113, 115],
    [138, 134, 120], [166, 157, 117], [196, 181, 108], [228, 207, 91], [255, 234, 70]];
  const DASHES = ["", "7 4", "2 3", "9 3 2 3"];
  const MARKS = ["circle", "square", "up", "diamond", "down", "cross"];
  const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const screenTheme = () => (dark.matches ? THEMES.dark : THEMES.light);
  const escapeText = (s) => String(s).replace(/[&<>"]/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[c]));
  const element = (name, attributes = {}, ...children) => {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
      else if (value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
    }
    e.append(...children);
    return e;
  };
  const known = (v) => typeof v === "number" && Number.isFinite(v);

  // Numbers

  const trimmed = (v, digits) => {
    const text = v.toPrecision(digits), plain = text.includes("e") ? String(Number(text)) : text;
    const short = plain.includes(".") && !plain.includes("e") ? plain.replace(/\.?0+$/, "") : plain;
    // From a thousand on, in groups of three, as counts are.
    return short.replace(/^-?\d{4,}/, (whole) => Number(whole).toLocaleString("en-US"));
  };
  function si(v, unit, digits = 3) {
    if (v === 0) return unit ? `0 ${unit}` : "0";
    const steps = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"],
      [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"], [1e-15, "f"]];
    const size = Math.abs(v);
    for (const [scale, prefix] of steps) {
      if (size >= scale * 0.9995 || scale === 1e-15) {
        if (!unit && scale < 1) return trimmed(v, digits);
        const tail = prefix + (unit || "");
        return trimmed(v / scale, digits) + (tail ? ` ${tail}` : "");
      }
    }
    return String(v);
  }
  function formatted(v, axis = {}, digits) {
    if (typeof v === "string") return v;
    if (!known(v)) return "";
    switch (axis.format) {
      case "count": return Math.abs(v) < 1e15 && Number.isInteger(v) ? v.toLocaleString("en-US") : trimmed(v, digits || 6);
      case "si": return si(v, axis.unit, digits || 4);
      case "percent": return v > 0 && v < 5e-6 ? "< 0.001 %" : `${trimmed(100 * v, digits || 3)} %`;
      case "change": return v === 0 ? "none" : `${v < 0 ? "−" : "+"}${trimmed(100 * Math.abs(v), digits || 3)} %`;
      case "ratio": return `${trimmed(v, digits || 4)} ×`;
      default: return trimmed(v, digits || 4) + (axis.unit ? ` ${axis.unit}` : "");
    }
  }
  const tickText = (v, axis) =>
    axis.format === "count" && v >= 1e6 ? si(v, "", 4) : axis.format === "ratio" ? formatted(v, { format: "number" }, 4) : formatted(v, axis, 4);

  // Scales

  function niceStep(rough) {
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  }
  // Powers are for what differs by powers: less than a decade is shown from zero, evenly, so that
  // 1.02 beside 1 looks as little as it is.
  function settled(axis, values) {
    const seen = values.filter((v) => known(v) && v > 0);
    if (axis.scale !== "log10" || seen.length === 0) return axis;
    const range = Math.log10(seen.reduce((a, b) => Math.max(a, b)) / seen.reduce((a, b) => Math.min(a, b)));
    return range < 0.75 ? { ...axis, scale: "linear", min: 0 } : axis;
  }
  function scaleOf(axis, values, from, to) {
    const log = axis.scale === "log2" ? Math.log2 : axis.scale === "log10" ? Math.log10 : null;
    let seen = values.filter((v) => known(v) && (!log || v > 0));
    if (!seen.length) seen = [1];
    let low = axis.min ?? seen.reduce((a, b) => Math.min(a, b));
    let high = axis.max ?? seen.reduce((a, b) => Math.max(a, b));
    const ticks = [];
    if (log) {
      let a = log(low), b = log(high);
      if (b - a < 1e-9) { a -= 0.5; b += 0.5; }
      const pad = axis.pad ?? (axis.scale === "log2" ? 0.03 : 0.05);
      a -= (b - a) * pad; b += (b - a) * pad;
      const base = axis.scale === "log2" ? 2 : 10;
      for (let p = Math.ceil(a - 1e-9); p <= b + 1e-9; ++p) ticks.push(base ** p);
      const inside = (v) => v > 0 && log(v) >= a - 1e-9 && log(v) <= b + 1e-9;
      if (axis.noun) {  // counts of something: where there are points, and nowhere else
        ticks.splice(0, ticks.length, ...new Set(seen));
      } else if (base === 10 && b - a < 2.5) {
        for (let p = Math.floor(a); p <= b; ++p)
          for (const m of [2, 5]) if (inside(m * 10 ** p)) ticks.push(Number((m * 10 ** p).toPrecision(6)));
      }
      const at = (v) => from + (to - from) * (log(v) - a) / (b - a);
      return { at, ticks: [...new Set(ticks)].sort((x, y) => x - y), has: (v) => known(v) && v > 0 };
    }
    if (axis.min === undefined && low > 0 && low < 0.6 * high) low = 0;
    if (high - low < 1e-12 * Math.max(1, Math.abs(high))) { high = low + (Math.abs(low) || 1) * 0.5; low = axis.min ?? Math.min(low, 0); }
    const step = niceStep((high - low) / 5);
    if (axis.max === undefined) high = Math.ceil(high / step - 1e-9) * step;
    if (axis.min === undefined) low = Math.floor(low / step + 1e-9) * step;
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; ++i) ticks.push(Number((i * step).toPrecision(12)));
    return { at: (v) => from + (to - from) * (v - low) / (high - low), ticks, has: known };
  }
  // Labels that would touch are left out: every second, third ... one stays.
  const thinned = (ticks, most) => {
    const every = Math.ceil(ticks.length / Math.max(2, most));
    return ticks.filter((_, i) => i % every === 0);
  };

  // SVG

  const n1 = (v) => (Math.round(v * 10) / 10).toString();
  const text = (x, y, s, theme, more = "") =>
    `<text x="${n1(x)}" y="${n1(y)}" fill="${theme.soft}" ${more}>${escapeText(s)}</text>`;
  // Width of a label as the browser sets it: letters such as m and W are wide.
  const pen = document.createElement("canvas").getContext("2d");
  const widthOf = (s) => {
    if (!pen) return 7.8 * s.length;
    pen.font = `12px ${FONT}`;
    return pen.measureText(s).width;
  };
  const widestOf = (list) => Math.max(0, ...list.map(widthOf));
  const line = (x1, y1, x2, y2, stroke, more = "") =>
    `<line x1="${n1(x1)}" y1="${n1(y1)}" x2="${n1(x2)}" y2="${n1(y2)}" stroke="${stroke}" ${more}/>`;
  function mark(kind, x, y, colour, r = 3.6) {
    const p = (list) => `<path d="M${list.map(([a, b]) => `${n1(x + a * r)} ${n1(y + b * r)}`).join("L")}Z" fill="${colour}"/>`;
    switch (kind) {
      case "square": return p([[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]);
      case "up": return p([[0, -1.2], [1.1, 0.9], [-1.1, 0.9]]);
      case "down": return p([[0, 1.2], [1.1, -0.9], [-1.1, -0.9]]);
      case "diamond": return p([[0, -1.3], [1.2, 0], [0, 1.3], [-1.2, 0]]);
      case "cross": return `<path d="M${n1(x - r)} ${n1(y - r)}L${n1(x + r)} ${n1(y + r)}M${n1(x - r)} ${n1(y + r)}L${n1(x + r)} ${n1(y - r)}" stroke="${colour}" stroke-width="2" fill="none"/>`;
      default: return `<circle cx="${n1(x)}" cy="${n1(y)}" r="${r}" fill="${colour}"/>`;
    }
  }
  function looks(chart, theme) {
    let next = 0;
    return chart.series.map((s) => {
      if (s.style === "idle") return { colour: theme.idle, dash: "", mark: null, width: 2 };
      if (s.style === "reference") return { colour: theme.reference, dash: "5 4", mark: null, width: 1.4 };
      const i = s.colour ?? next++;
      const named = { solid: "", dashed: DASHES[1], dotted: DASHES[2] }[s.style];
      return {
        colour: theme.series[i % 8], mark: s.marks === false ? null : MARKS[i % 6], width: 2,
        dash: named ?? DASHES[Math.floor(i / 8) % 4], hatched: Math.floor(i / 8) % 2 === 1, number: i,
      };
    });
  }
  // Hatching tells stacked parts apart where colours come round again.
  const hatches = (chart, theme, prefix) => (chart.kind === "area" || chart.kind === "bars"
    ? `<defs>${theme.series.map((c, i) => `<pattern id="${prefix}${i}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="${c}"/><rect width="2" height="6" fill="${theme.ground}" fill-opacity="0.75"/></pattern>`).join("")}</defs>` : "");
  let prefixes = 0;
  const fillOf = (look, prefix) => (look.hatched ? `url(#${prefix}${look.number % 8})` : look.colour);

  function frame(chart, theme, box, xs, ys) {
    let out = "";
    const widest = widestOf(xs.ticks.map((v) => tickText(v, chart.x))) + 14;
    for (const v of thinned(ys.ticks, (box.bottom - box.top) / 22)) {
      out += line(box.left, ys.at(v), box.right, ys.at(v), theme.grid);
      out += text(box.left - 7, ys.at(v) + 4, tickText(v, chart.y), theme, 'text-anchor="end"');
    }
    for (const v of thinned(xs.ticks, (box.right - box.left) / widest)) {
      out += line(xs.at(v), box.bottom, xs.at(v), box.bottom + 5, theme.axis);
      out += text(xs.at(v), box.bottom + 19, tickText(v, chart.x), theme, 'text-anchor="middle"');
    }
    out += line(box.left, box.bottom, box.right, box.bottom, theme.axis);
    return out + axisNames(chart, theme, box);
  }
  // Distances on an axis of powers mean factors: that is said where the eye is.
  const axisName = (axis) =>
    (axis?.label ? axis.label + (axis.scale === "log2" || axis.scale === "log10" ? " (log scale)" : "") : "");
  const axisNames = (chart, theme, box) =>
    text((box.left + box.right) / 2, box.bottom + 37, axisName(chart.x), theme, 'text-anchor="middle"') +
    text(box.labelLeft ?? 0, box.top - 16, axisName(chart.y), theme, 'text-anchor="start"');

  // What can be pointed at: {x, y (pixels), title, rows: [{name, value, look}], near}.
  function drawLines(chart, width, height, theme, hidden, prefix) {
    const shown = chart.series.map((s, i) => ({ s, i })).filter(({ i }) => !hidden.has(i));
    const stacked = chart.kind === "area";
    const xsAll = [], ysAll = stacked ? [0] : [];
    for (const { s } of shown) {
      for (const p of s.points) {
        xsAll.push(p[0]);
        if (!stacked) ysAll.push(p[1], ...(p.length > 3 ? [p[2], p[3]] : []));
      }
    }
    const layers = [];
    if (stacked) {
      const floor = new Map();
      for (const { s, i } of shown) {
        layers.push({ i, points: s.points.map(([x, y]) => {
          const low = floor.get(x) || 0, high = low + (y || 0);
          floor.set(x, high);
          return [x, low, high];
        }) });
      }
      ysAll.push(...floor.values());
    }
    chart = { ...chart, y: settled(chart.y, ysAll) };
    const probe = scaleOf(chart.y, ysAll, height, 0);
    const labels = widestOf(probe.ticks.map((v) => tickText(v, chart.y)));
    const box = { left: Math.max(34, labels + 12), right: width - (stacked ? 26 : 14), top: 32, bottom: height - 44 };
    const xs = scaleOf(stacked ? { pad: 0, ...chart.x } : chart.x, xsAll, box.left, box.right);
    const ys = scaleOf(chart.y, ysAll, box.bottom, box.top);
    const look = looks(chart, theme);
    let out = hatches(chart, theme, prefix) + frame(chart, theme, box, xs, ys);
    const hits = new Map();
    const note = (x, entry) => {
      if (!hits.has(x)) hits.set(x, { x: xs.at(x), title: `${formatted(x, chart.x)}${chart.x.noun ? ` ${chart.x.noun}` : ""}`, rows: [] });
      hits.get(x).rows.push(entry);
    };
    if (stacked) {
      for (const { i, points } of layers) {
        const path = [...points.map(([x, , h]) => [xs.at(x), ys.at(h)]), ...[...points].reverse().map(([x, l]) => [xs.at(x), ys.at(l)])];
        if (points.length === 1) {
          const [x, l, h] = points[0];
          out += `<rect x="${n1(xs.at(x) - 30)}" y="${n1(ys.at(h))}" width="60" height="${n1(ys.at(l) - ys.at(h))}" fill="${fillOf(look[i], prefix)}"/>`;
        } else {
          out += `<path d="M${path.map(([a, b]) => `${n1(a)} ${n1(b)}`).join("L")}Z" fill="${fillOf(look[i], prefix)}" stroke="${theme.ground}" stroke-width="0.8"/>`;
        }
        for (const [x, l, h] of points) note(x, { name: chart.series[i].name, value: h - l, look: look[i], y: ys.at((l + h) / 2), series: i });
      }
    } else {
      for (const { s, i } of shown) {
        const points = s.points.filter((p) => xs.has(p[0]) && ys.has(p[1]));
        if (s.band && points.length > 1) {
          const edge = [...points.map((p) => [xs.at(p[0]), ys.at(p[3])]), ...[...points].reverse().map((p) => [xs.at(p[0]), ys.at(p[2])])];
          out += `<path d="M${edge.map(([a, b]) => `${n1(a)} ${n1(b)}`).join("L")}Z" fill="${look[i].colour}" fill-opacity="0.18"/>`;
        }
        out += `<path data-series="${i}" d="M${points.map((p) => `${n1(xs.at(p[0]))} ${n1(ys.at(p[1]))}`).join("L")}" fill="none" stroke="${look[i].colour}" stroke-width="${look[i].width}" stroke-linejoin="round" ${look[i].dash ? `stroke-dasharray="${look[i].dash}"` : ""}/>`;
        for (const p of points) {
          const x = xs.at(p[0]), y = ys.at(p[1]);
          if (!s.band && p.length > 3 && ys.has(p[2]) && p[3] > p[2] && ys.at(p[2]) - ys.at(p[3]) > 2)
            out += line(x, ys.at(p[2]), x, ys.at(p[3]), look[i].colour, 'stroke-width="1.2" stroke-opacity="0.8"');
          if (look[i].mark && points.length < 200) out += mark(look[i].mark, x, y, look[i].colour);
          if (s.labels) {
            const right = x + 8 + widthOf(s.name) < box.right;
            out += text(right ? x + 8 : x - 8, y + 4, s.name, theme, `text-anchor="${right ? "start" : "end"}"`);
          }
          const range = p.length > 3 && p[3] > p[2] ? `${formatted(p[1], chart.y)} (${formatted(p[2], chart.y, 3)} … ${formatted(p[3], chart.y, 3)})` : undefined;
          if (!s.silent) note(p[0], { name: s.name, value: p[1], text: range, look: look[i], y, series: i });
        }
      }
    }
    return { out, hits: [...hits.values()], box, value: chart.y, emphasise: !stacked };
  }

  function drawBars(chart, width, height, theme, hidden, prefix) {
    const shown = chart.series.map((s, i) => ({ s, i })).filter(({ i }) => !hidden.has(i));
    const totals = chart.categories.map((_, c) => shown.reduce((sum, { s }) => sum + (s.values[c] || 0), 0));
    const most = Math.min(Math.max(...chart.categories.map((c) => c.length)), Math.max(8, Math.floor(width * 0.42 / 6.6)));
    const labelOf = (name) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);
    const box = { left: widestOf(chart.categories.map(labelOf)) + 14, top: 32, bottom: height - 44,
      right: width - widestOf(totals.map((v) => formatted(v, chart.y, 3))) - 12 };
    const xs = scaleOf(chart.y, [0, ...totals], box.left, box.right);
    const look = looks(chart, theme);
    const step = (box.bottom - box.top) / chart.categories.length;
    let out = hatches(chart, theme, prefix);
    for (const v of thinned(xs.ticks, (box.right - box.left) / 70)) {
      out += line(xs.at(v), box.top, xs.at(v), box.bottom, theme.grid);
      out += text(xs.at(v), box.bottom + 19, tickText(v, chart.y), theme, 'text-anchor="middle"');
    }
    const hits = [];
    chart.categories.forEach((name, c) => {
      const y = box.top + c * step;
      out += text(box.left - 7, y + step / 2 + 4, labelOf(name), theme, 'text-anchor="end"');
      let at = 0;
      const rows = [];
      for (const { s, i } of shown) {
        const v = s.values[c];
        if (!known(v)) continue;
        const a = xs.at(at), b = xs.at(at + v);
        out += `<rect x="${n1(a)}" y="${n1(y + step * 0.14)}" width="${n1(Math.max(0, b - a))}" height="${n1(step * 0.72)}" fill="${fillOf(look[i], prefix)}"/>`;
        rows.push({ name: s.name, value: v, look: look[i], y: y + step / 2, series: i, x0: a, x1: b });
        at += v;
      }
      out += text(xs.at(at) + 5, y + step / 2 + 4, formatted(at, chart.y, 3), theme);
      hits.push({ y: y + step / 2, half: step / 2, title: name, rows });
    });
    out += line(box.left, box.top, box.left, box.bottom, theme.axis);
    out += text((box.left + box.right) / 2, box.bottom + 37, axisName(chart.y), theme, 'text-anchor="middle"');
    return { out, hits, box, value: chart.y, sideways: true };
  }

  function rampColour(share) {
    const at = Math.min(1, Math.max(0, share)) * (RAMP.length - 1), i = Math.min(RAMP.length - 2, Math.floor(at));
    return `rgb(${RAMP[i].map((c, k) => Math.round(c + (RAMP[i + 1][k] - c) * (at - i))).join(",")})`;
  }
  function drawHeat(chart, width, height, theme) {
    const box = { left: 56, right: width - 12, top: 32, bottom: height - 92 };
    const all = chart.cells.flat().filter(known);
    const low = chart.value.min ?? Math.min(...all), high = chart.value.max ?? Math.max(...all);
    const step = (box.right - box.left) / chart.columns.length;
    const rowText = (share) => formatted(chart.y.min + share * (chart.y.max - chart.y.min), chart.y, 3);
    let out = "";
    const hits = [];
    const gap = step > 14 ? 1.5 : 0;
    chart.cells.forEach((column, c) => {
      const h = (box.bottom - box.top) / column.length, x = box.left + c * step;
      for (let r = 0; r < column.length;) {  // equal neighbours become one rectangle
        let end = r + 1;
        while (end < column.length && column[end] === column[r]) ++end;
        const colour = known(column[r]) ? rampColour(high > low ? (column[r] - low) / (high - low) : 1) : theme.none;
        out += `<rect x="${n1(x)}" y="${n1(box.top + r * h)}" width="${n1(step - gap)}" height="${n1((end - r) * h + (end < column.length ? 0.7 : 0))}" fill="${colour}"/>`;
        r = end;
      }
      hits.push({ x: x + step / 2, half: step / 2, column: c, cell: h });
    });
    const widest = widestOf(chart.columns) + 12;
    const every = Math.ceil(widest / step);
    chart.columns.forEach((name, c) => {
      if (c % every === 0) out += text(box.left + (c + 0.5) * step, box.bottom + 19, name, theme, 'text-anchor="middle"');
    });
    for (const share of [0, 0.25, 0.5, 0.75, 1])
      out += text(box.left - 7, box.top + share * (box.bottom - box.top) + 4, rowText(share), theme, 'text-anchor="end"');
    out += axisNames(chart, theme, box);
    const bar = { left: box.left, width: Math.min(260, box.right - box.left - 60), y: height - 42 };
    for (let i = 0; i < 48; ++i)
      out += `<rect x="${n1(bar.left + bar.width * i / 48)}" y="${bar.y}" width="${n1(bar.width / 48 + 0.4)}" height="10" fill="${rampColour(i / 47)}"/>`;
    out += text(bar.left - 6, bar.y + 9, formatted(low, chart.value, 3), theme, 'text-anchor="end"') +
      text(bar.left + bar.width + 6, bar.y + 9, formatted(high, chart.value, 3), theme) +
      text(bar.left, bar.y + 27, chart.value.label || "", theme);
    return { out, hits, box, value: chart.value, heat: { low, high } };
  }

  const heightOf = (chart, width) => (chart.kind === "bars" ? 84 + Math.max(22, Math.min(34, 440 / chart.categories.length)) * chart.categories.length
    : chart.kind === "heat" ? Math.max(300, Math.min(430, width * 0.55)) : Math.max(270, Math.min(400, width * 0.5)));
  function draw(chart, width, theme, hidden) {
    const height = chart.height || heightOf(chart, width), prefix = `h${++prefixes}-`;
    const plot = chart.kind === "bars" ? drawBars(chart, width, height, theme, hidden, prefix)
      : chart.kind === "heat" ? drawHeat(chart, width, height, theme) : drawLines(chart, width, height, theme, hidden, prefix);
    return { ...plot, width, height };
  }
  const svgOpen = (width, height, label) =>
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${n1(width)} ${n1(height)}" width="${n1(width)}" height="${n1(height)}" font-family="${FONT}" font-size="12" role="img" aria-label="${escapeText(label)}">`;
  const swatch = (look, kind) => {
    const inner = kind === "area" || kind === "bars"
      ? `<rect x="1" y="1" width="14" height="10" fill="${look.colour}"/>${look.hatched ? `<path d="M3 11L9 1M9 11L15 1" stroke="${screenTheme().ground}" stroke-width="2"/>` : ""}`
      : line(0, 6, 26, 6, look.colour, `stroke-width="2" ${look.dash ? `stroke-dasharray="${look.dash}"` : ""}`) + (look.mark ? mark(look.mark, 13, 6, look.colour) : "");
    return `<svg width="${kind === "area" || kind === "bars" ? 16 : 26}" height="12" aria-hidden="true">${inner}</svg>`;
  };

  // Downloads

  function save(name, type, content) {
    const link = element("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const cell = (v) => (v === null || v === undefined ? "" : /[",\n]/.test(v) ? `"${String(v).replace(/"/g, '""')}"` : String(v));
  const csv = (rows) => rows.map((r) => r.map(cell).join(",")).join("\n") + "\n";
  function chartCsv(chart) {
    if (chart.kind === "table") return csv([chart.columns.map((c) => c.name), ...chart.rows]);
    if (chart.kind === "bars") return csv([["", ...chart.series.map((s) => s.name)], ...chart.categories.map((c, i) => [c, ...chart.series.map((s) => s.values[i])])]);
    if (chart.kind === "heat") {
      const rows = [[chart.x.label, `${chart.y.label}: from`, "to", chart.value.label]];
      chart.cells.forEach((column, c) => column.forEach((v, r) => {
        const share = (k) => Number((chart.y.min + k / column.length * (chart.y.max - chart.y.min)).toPrecision(6));
        rows.push([chart.columns[c], share(r), share(r + 1), v]);
      }));
      return csv(rows);
    }
    return csv([["series", chart.x.label, chart.y.label, "low", "high"], ...chart.series.flatMap((s) => s.points.map((p) => [s.name, ...p]))]);
  }
  // On white, with title and legend: as it goes into a document.
  function chartSvg(chart, hidden) {
    const theme = THEMES.light, width = 760, plot = draw(chart, width, theme, hidden);
    let legend = "", x = 12, y = plot.height + 38;
    if (chart.series && chart.series.length > 1) {
      looks(chart, theme).forEach((look, i) => {
        if (hidden.has(i)) return;
        const w = 34 + chart.series[i].name.length * 7.2;
        if (x + w > width) { x = 12; y += 20; }
        const boxed = chart.kind === "area" || chart.kind === "bars";
        legend += boxed ? `<rect x="${x}" y="${y - 10}" width="14" height="11" fill="${look.colour}" ${look.hatched ? 'fill-opacity="0.55"' : ""}/>`
          : line(x, y - 4, x + 26, y - 4, look.colour, `stroke-width="2" ${look.dash ? `stroke-dasharray="${look.dash}"` : ""}`) + (look.mark ? mark(look.mark, x + 13, y - 4, look.colour) : "");
        legend += text(x + (boxed ? 20 : 32), y, chart.series[i].name, theme);
        x += w + 12;
      });
      y += 12;
    }
    return `${svgOpen(width, y + 4, chart.title)}<rect width="100%" height="100%" fill="${theme.ground}"/>` +
      `<text x="12" y="22" font-size="15" font-weight="600" fill="${theme.text}">${escapeText(chart.title)}</text>` +
      `<g transform="translate(0 26)">${plot.out}</g>${legend}</svg>\n`;
  }
  const fileName = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "chart";

  // Figures

  let tip = null;
  function showTip(html, x, y) {
    if (!tip) { tip = element("div", { class: "gs-tip", role: "status" }); document.body.append(tip); }
    tip.innerHTML = html;
    tip.hidden = false;
    const r = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, x + 16 + r.width > innerWidth ? x - r.width - 14 : x + 16)}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - r.height - 4))}px`;
  }
  const hideTip = () => { if (tip) tip.hidden = true; };

  function tipOf(chart, plot, x, y) {
    if (chart.kind === "heat") {
      const hit = plot.hits.find((h) => Math.abs(x - h.x) <= h.half);
      if (!hit || y < plot.box.top || y >= plot.box.bottom) return null;
      const r = Math.floor((y - plot.box.top) / hit.cell), column = chart.cells[hit.column];
      const share = (k) => formatted(chart.y.min + k / column.length * (chart.y.max - chart.y.min), chart.y, 3);
      const v = column[r];
      return { html: `<b>${escapeText(chart.columns[hit.column])}${chart.x.noun ? ` ${escapeText(chart.x.noun)}` : ""}</b><br>${escapeText(chart.y.label)}: ${share(r)} – ${share(r + 1)}<br>${escapeText(chart.value.label)}: <b>${known(v) ? formatted(v, chart.value) : "not known"}</b>`,
        at: [hit.x, plot.box.top + (r + 0.5) * hit.cell] };
    }
    let hit = null, near = null;
    if (plot.sideways) {
      hit = plot.hits.find((h) => Math.abs(y - h.y) <= h.half);
      near = hit && hit.rows.find((row) => x >= row.x0 && x < row.x1);
    } else {
      for (const h of plot.hits) if (!hit || Math.abs(h.x - x) < Math.abs(hit.x - x)) hit = h;
      if (hit) for (const row of hit.rows) if (!near || Math.abs(row.y - y) < Math.abs(near.y - y)) near = row;
    }
    if (!hit || !hit.rows.length) return null;
    let rows = [...hit.rows];
    if (plot.emphasise) rows.sort((a, b) => a.y - b.y);
    else if (!plot.sideways) rows.reverse();
    const many = rows.length;
    if (many > 14) {
      const i = Math.max(0, Math.min(many - 14, rows.indexOf(near) - 7));
      rows = rows.slice(i, i + 14);
    }
    const cells = rows.map((row) => `<tr${row === near ? ' class="near"' : ""}><td>${swatch(row.look, chart.kind)}</td><td>${escapeText(row.name)}</td><td>${escapeText(row.text ?? formatted(row.value, plot.value))}</td></tr>`).join("");
    return { html: `<b>${escapeText(hit.title)}</b><table>${cells}</table>${many > 14 ? `and ${many - 14} more` : ""}`,
      at: plot.sideways ? [plot.box.right, hit.y] : [hit.x, near ? near.y : plot.box.top], guide: plot.sideways ? null : hit.x, near };
  }

  function showChart(chart, body, tools, redraws) {
    const hidden = new Set();
    const plotBox = element("div", { class: "gs-plot", tabindex: "0", "aria-label": `${chart.title}: arrow keys read values` });
    const legend = element("ul", { class: "gs-legend" });
    let plot = null, step = -1;
    const render = () => {
      const width = Math.max(260, plotBox.clientWidth || 700);
      plot = draw(chart, width, screenTheme(), hidden);
      plotBox.innerHTML = `${svgOpen(plot.width, plot.height, chart.summary || chart.title)}${plot.out}<g class="guide"></g></svg>`;
    };
    const point = (x, y, clientX, clientY) => {
      const found = tipOf(chart, plot, x, y);
      const guide = plotBox.querySelector(".guide");
      if (!found) { guide.innerHTML = ""; hideTip(); return; }
      guide.innerHTML = (found.guide !== null && found.guide !== undefined ? line(found.guide, plot.box.top, found.guide, plot.box.bottom, screenTheme().axis, 'stroke-dasharray="2 3"') : "") +
        (found.near && plot.emphasise ? `<circle cx="${n1(found.guide)}" cy="${n1(found.near.y)}" r="7" fill="none" stroke="${screenTheme().text}" stroke-width="1.5"/>` : "");
      showTip(found.html, clientX, clientY);
    };
    const leave = () => { const g = plotBox.querySelector(".guide"); if (g) g.innerHTML = ""; hideTip(); step = -1; };
    plotBox.addEventListener("pointermove", (e) => {
      const r = plotBox.getBoundingClientRect(), scale = plot.width / r.width;
      point((e.clientX - r.left) * scale, (e.clientY - r.top) * scale, e.clientX, e.clientY);
    });
    plotBox.addEventListener("pointerleave", leave);
    plotBox.addEventListener("blur", leave);
    plotBox.addEventListener("keydown", (e) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
      if (!by || !plot.hits.length) return;
      e.preventDefault();
      step = Math.max(0, Math.min(plot.hits.length - 1, step < 0 ? 0 : step + by));
      const r = plotBox.getBoundingClientRect(), scale = plot.width / r.width, hit = [...plot.hits].sort((a, b) => (a.x ?? a.y) - (b.x ?? b.y))[step];
      const x = hit.x ?? plot.box.left, y = hit.y ?? (plot.box.top + plot.box.bottom) / 2;
      point(x, y, r.left + x / scale, r.top + y / scale);
    });
    const drawLegend = () => {
      legend.replaceChildren();
      if (!chart.series || chart.series.length < 2) return;
      looks(chart, screenTheme()).forEach((look, i) => {
        const b = element("button", { type: "button", "aria-pressed": String(!hidden.has(i)), title: "show or hide" });
        b.innerHTML = `${swatch(look, chart.kind)}<span>${escapeText(chart.series[i].name)}</span>`;
        const dim = (on) => {
          for (const path of plotBox.querySelectorAll("[data-series]")) path.style.opacity = on && Number(path.dataset.series) !== i ? 0.18 : "";
        };
        b.addEventListener("pointerenter", () => dim(true));
        b.addEventListener("pointerleave", () => dim(false));
        b.addEventListener("click", () => {
          if (hidden.has(i)) hidden.delete(i);
          else if (hidden.size + 1 < chart.series.length) hidden.add(i);
          b.setAttribute("aria-pressed", String(!hidden.has(i)));
          render();
        });
        legend.append(element("li", {}, b));
      });
    };
    body.append(plotBox, legend);
    if (chart.note) body.append(element("p", { class: "gs-note" }, chart.note));
    tools.append(
      element("button", { type: "button", "aria-label": `Download ${chart.title} as SVG`, onclick: () => save(`${fileName(chart.title)}.svg`, "image/svg+xml", chartSvg(chart, hidden)) }, "SVG"),
      element("button", { type: "button", "aria-label": `Download ${chart.title} as CSV`, onclick: () => save(`${fileName(chart.title)}.csv`, "text/csv", chartCsv(chart)) }, "CSV"));
    render();
    drawLegend();
    redraws.push({ resize: () => { if (plotBox.clientWidth && Math.abs(plotBox.clientWidth - plot.width) > 1) render(); }, theme: () => { render(); drawLegend(); } });
  }

  function showTable(table, body, tools) {
    const isNumber = (c) => c.format && c.format !== "text" && c.format !== "wide";
    const head = element("tr"), rows = element("tbody");
    let order = table.rows.map((_, i) => i), sorted = -1, falling = false;
    const fill = () => {
      rows.innerHTML = order.map((i) => `<tr>${table.rows[i].map((v, c) => {
        const column = table.columns[c];
        return `<td${isNumber(column) ? ' class="n"' : column.format === "wide" ? ' class="wide"' : ""}>${escapeText(formatted(v, column))}</td>`;
      }).join("")}</tr>`).join("");
    };
    table.columns.forEach((column, c) => {
      const sort = () => {
        falling = sorted === c ? !falling : Boolean(isNumber(column));
        sorted = c;
        const key = (i) => table.rows[i][c];
        order = table.rows.map((_, i) => i).sort((a, b) => {
          const x = key(a), y = key(b);
          const by = known(x) && known(y) ? x - y : (x === null) - (y === null) || String(x).localeCompare(String(y));
          return falling ? -by : by;
        });
        for (const th of head.children) th.removeAttribute("aria-sort");
        head.children[c].setAttribute("aria-sort", falling ? "descending" : "ascending");
        fill();
      };
      head.append(element("th", { class: isNumber(column) ? "n" : "", scope: "col", tabindex: "0", title: column.title || "sort", onclick: sort, onkeydown: (e) => { if (e.key === "Enter") sort(); } }, column.name));
    });
    fill();
    body.append(element("div", { class: "gs-table", tabindex: "0", role: "region", "aria-label": table.title }, element("table", {}, element("thead", {}, head), rows)));
    if (table.note) body.append(element("p", { class: "gs-note" }, table.note));
    tools.append(element("button", { type: "button", "aria-label": `Download ${table.title} as CSV`, onclick: () => save(`${fileName(table.title)}.csv`, "text/csv", chartCsv(table)) }, "CSV"));
  }

  const figures = [];
  function showFigure(holder, figure) {
    const shown = { redraws: [] };
    const show = (k) => {
      const view = figure.views[k].view, body = element("div"), tools = element("div", { class: "gs-tools" });
      shown.redraws = [];
      if (figure.views.length > 1) {
        const select = element("select", { "aria-label": figure.what, onchange: (e) => show(Number(e.target.value)) },
          ...figure.views.map((v, i) => element("option", { value: i, selected: i === k }, v.name)));
        tools.append(element("label", {}, `${figure.what}: `, select));
      }
      holder.replaceChildren(element("div", { class: "gs-head" }, element("p", { class: "gs-title" }, view.title || ""), tools), body);
      if (view.kind === "table") showTable(view, body, tools);
      else showChart(view, body, tools, shown.redraws);
      if (figure.views.length > 1 && document.activeElement === document.body && shown.ready) tools.querySelector("select").focus();
      shown.ready = true;
    };
    show(0);
    figures.push(shown);
  }
  // For scripts of the page itself, and for tests.
  window.gpusimPage = { formatted, si, draw: (chart) => draw(chart, 760, THEMES.light, new Set()).out, chartSvg: (chart) => chartSvg(chart, new Set()), chartCsv };

  const data = JSON.parse(document.getElementById("gpusim-figures").textContent);
  for (const holder of document.querySelectorAll("[data-figure]")) showFigure(holder, data[Number(holder.dataset.figure)]);
  const redraw = (what) => figures.forEach((f) => f.redraws.forEach((r) => r[what]()));
  let waiting = 0;
  window.addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(() => redraw("resize")); });
  // Charts in a folded part have no width until it opens.
  document.addEventListener("toggle", () => redraw("resize"), true);
  dark.addEventListener("change", () => redraw("theme"));
  window.addEventListener("scroll", hideTip, { passive: true });
  document.documentElement.dataset.figures = String(figures.length);
})();
