#!/usr/bin/env python3
"""The pages of `gpusim` in headless Chromium: what they log, load and show.

  test_page.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
Screenshots are kept in BUILD_FOLDER. Exit status 77 where there is no Chromium.
"""
import base64
import json
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import browser  # noqa: E402
from studies import SPREAD, SweepCase, main  # noqa: E402

TO_READ = ["light", "dark"]


class Pages(SweepCase):
    def make(self):
        """A study with everything in it, and a comparison."""
        (self.folder / "s.json").write_text(json.dumps({
            "title": "A study <of> \"everything\"", "cores": "1,2,4..64",
            "energy": ["fermi", "et-soc1"],
            "programs": [
                {"program": str(self.guest), "name": "spread", "entry": "spread",
                 "call": ["@core", "@cores", 65536, 100]},
                {"program": str(self.guest), "name": "each", "entry": "each", "scaling": "weak",
                 "call": ["@core", "@cores", 100]},
                {"program": str(self.guest), "name": "few", "entry": "few", "scaling": "none",
                 "call": ["@core", "@cores", 8]}]}))
        self.sweep("s.json", "-o", "a", "--svg", "figures", status=1)
        self.sweep(self.guest, "--name", "spread", *SPREAD, "--cores", "1,4", "-o", "b")
        self.sweep("--compare", "a", "b", "-o", "c")
        return self.folder / "a/index.html", self.folder / "c/compare.html"

    def test_pages(self):
        page, comparison = self.make()
        with browser.Browser(browser.find_chromium()) as b:
            for path in (page, comparison):
                for width, phone in ((1280, False), (375, True)):
                    for theme in TO_READ:
                        with self.subTest(page=path.name, width=width, theme=theme):
                            b.show(path, width=width, dark=theme == "dark", phone=phone)
                            self.check_page(b, width)
                            b.screenshot(self.build / f"{path.stem}-{width}-{theme}.png")
            b.show(page)
            self.check_colours(b)
            self.check_hover(b)
            self.check_choice(b)
            self.check_downloads(b)
            self.assertEqual(b.problems, [])
            self.assertEqual(b.requests, [])
            self.check_svg_files(b)
            self.check_print(b, page)
            b.show(comparison)
            self.check_comparison(b)

    def make_pages_of_runs(self):
        """By name: whether it is made by device_sim/base/page.h."""
        def call(*words):
            done = subprocess.run([str(self.gpusim), *map(str, words)], cwd=self.folder,
                                  capture_output=True, text=True, timeout=240, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
        run = ("run", self.guest, *SPREAD, "--quiet")
        call(*run, "--cores", "64", "--energy", "et-soc1", "--profile=profile.html",
             "--power-trace", "power.html")
        call(*run, "--cores", "8", "--chip", "bus-8", "--chip-page", "chip.html")
        (self.folder / "sheet.csv").write_text(
            "suite,kernel,IBP,CONSTP,model_total_W,measured_W\n"
            "s,first,30,70,100,80\ns,second,60,60,120,100\nt,third,40,50,90,100\n")
        call("energy", "validate", "sheet.csv", "--html", "validate.html")
        return {"profile": True, "power": True, "chip": True, "validate": False}

    def test_pages_of_runs(self):
        """They begin with an answer, nothing is cut off, and they print whole."""
        pages = self.make_pages_of_runs()
        with browser.Browser(browser.find_chromium()) as b:
            for name, is_ours in pages.items():
                path = self.folder / f"{name}.html"
                for width, phone in ((1280, False), (400, True)):
                    with self.subTest(page=name, width=width):
                        b.show(path, width=width, phone=phone)
                        self.check_page(b, width, figures=1 if is_ours else 0)
                        b.screenshot(self.build / f"{name}-{width}.png")
                if is_ours:
                    self.assertTrue(b.evaluate(
                        "document.querySelector('header .answer').textContent"), name)
                with self.subTest(page=name, print=True):
                    self.check_print(b, path, least_pages=1)
            b.show(self.folder / "power.html")
            series = b.evaluate("""JSON.parse(document.getElementById('gpusim-figures').textContent)
              [0].views[0].view.series.map(s => [s.name, s.style])""")
            self.assertEqual(series[0], ["idle", "idle"])

    def check_svg_files(self, b):
        """--svg: as wide as a column, no label outside the picture or on another one."""
        files = sorted((self.folder / "figures").glob("*.svg"))
        names = [f.stem for f in files]
        for name in ("parallel-efficiency", "speed-up", "load-of-the-cores-few",
                     "dynamic-energy-by-class-spread-on-fermi", "instruction-classes-of-each"):
            self.assertIn(name, names)
        for path in files:
            with self.subTest(file=path.name):
                text = path.read_text()
                self.assertIn('width="88mm"', text)
                self.assertNotRegex(text, "nan|inf[^o]")
                b.show(path)
                self.assertEqual(b.problems, [])
                self.assertEqual(b.evaluate("""(() => {
                  const bad = [];
                  const all = [...document.querySelectorAll('text')].filter(t => t.textContent);
                  const outer = document.documentElement.getBoundingClientRect();
                  const boxes = all.map(t => [t.textContent, t.getBoundingClientRect()]);
                  boxes.forEach(([s, r], i) => {
                    if (r.left < outer.left - 1 || r.right > outer.right + 1 ||
                        r.bottom > outer.bottom + 1) bad.push('cut off: ' + s);
                    for (const [t, q] of boxes.slice(i + 1))
                      if (r.left < q.right - 1 && q.left < r.right - 1 &&
                          r.top < q.bottom - 4 && q.top < r.bottom - 4) bad.push(s + ' on ' + t);
                  });
                  return bad; })()"""), [])
        self.check_pdf(self.folder / "figures/speed-up.svg")

    def check_pdf(self, svg):
        """What turns it into PDF keeps the width of a column: 88 mm are 249.4 points."""
        self.assertTrue(shutil.which("rsvg-convert"), "librsvg2-bin (scripts/packages.txt)")
        pdf = subprocess.run(["rsvg-convert", "-f", "pdf", svg], capture_output=True, check=True)
        box = re.search(rb"/MediaBox \[ ?([0-9. ]+)", pdf.stdout)
        self.assertAlmostEqual(float(box[1].split()[2]), 88 / 25.4 * 72, delta=0.5)

    def check_print(self, b, page, least_pages=3):
        """No heading is parted from what follows: each section's heading and its first figure's
        title lie on one page."""
        b.show(page)
        b.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(b.evaluate("""[...document.querySelectorAll(
          '.gs-table, .src, .flames, .wide, pre')]
          .map(e => getComputedStyle(e))
          .filter(s => s.overflow !== 'visible' || s.maxHeight !== 'none').length"""), 0)
        self.assertEqual(b.evaluate("""[...document.querySelectorAll('h2, h2 + p, .gs-head')]
          .filter(e => getComputedStyle(e).breakAfter !== 'avoid').length"""), 0)
        self.assertEqual(b.evaluate("""[...document.querySelectorAll('nav, .gs-tools')]
          .filter(e => getComputedStyle(e).display !== 'none').length"""), 0)
        pdf = base64.b64decode(b.call("Page.printToPDF")["data"])
        self.assertGreaterEqual(pdf.count(b"/Type /Page\n") + pdf.count(b"/Type/Page"), least_pages)
        b.call("Emulation.setEmulatedMedia", media="")

    def check_comparison(self, b):
        """The answer and a table of what changed come before all charts."""
        answer = b.evaluate("document.querySelector('header .answer').textContent")
        first = b.evaluate("""(f => f.views[0].view)(JSON.parse(
          document.getElementById('gpusim-figures').textContent)[0])""")
        if "Nothing changed" in answer:
            self.assertEqual(first["kind"], "lines")
        else:
            self.assertEqual(first["title"], "Greatest change of each quantity")
        headings = b.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
        self.assertEqual([headings[0], headings[-1]],
                         ["What changed", "Speed of the simulator itself"])

    def check_page(self, b, width, figures=5):
        self.assertEqual(b.problems, [])
        self.assertEqual(b.requests, [])
        count = b.evaluate("document.querySelectorAll('[data-figure]').length")
        if figures:
            self.assertEqual(b.evaluate("Number(document.documentElement.dataset.figures)"), count)
        self.assertGreaterEqual(count, figures)
        self.assertEqual(b.evaluate(
            "[...document.querySelectorAll('[data-figure]')].filter(f => !f.querySelector('svg, "
            "table')).length"), 0)
        # Nothing sticks out: a phone need not scroll sideways.
        self.assertLessEqual(b.evaluate("document.documentElement.scrollWidth"), width)
        self.assertFalse(b.evaluate("""/NaN|undefined|Infinity/.test(
          (document.querySelector('main') || document.body).innerHTML)"""))
        # Labels on an axis do not overlap, and none is cut off.
        self.assertEqual(b.evaluate("""(() => { let bad = [];
          for (const svg of document.querySelectorAll('.gs-plot svg, svg.chart')) {
            const outer = svg.getBoundingClientRect();
            const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]).filter(([s]) => s);
            boxes.forEach(([s, r], i) => {
              if (r.left < outer.left - 2 || r.right > outer.right + 2) bad.push('cut off: ' + s);
              for (const [t, q] of boxes.slice(i + 1))
                if (r.left < q.right - 1 && q.left < r.right - 1 && r.top < q.bottom - 4 && q.top < r.bottom - 4) bad.push(s + ' on ' + t);
            });
          }
          return bad; })()"""), [])

    def check_colours(self, b):
        light = b.evaluate("getComputedStyle(document.body).backgroundColor")
        b.call("Emulation.setEmulatedMedia",
               features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.assertNotEqual(b.evaluate("getComputedStyle(document.body).backgroundColor"), light)
        b.call("Emulation.setEmulatedMedia",
               features=[{"name": "prefers-color-scheme", "value": "light"}])

    @staticmethod
    def eventually(look, seconds=10):
        deadline = time.monotonic() + seconds
        while not (seen := look()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return seen

    def check_hover(self, b):
        place = b.evaluate("""(() => { const plot = document.querySelector('.gs-plot');
          plot.scrollIntoView({block: 'center', behavior: 'instant'});
          const r = plot.getBoundingClientRect(); return [r.left + r.width * 0.7, r.top + r.height / 2]; })()""")
        tip = "(t => t.hidden ? '' : t.innerText)(document.querySelector('.gs-tip'))"
        # A scroll that is still on its way hides the tip again.
        text = self.eventually(lambda: (b.move(*place), b.evaluate(tip))[1])
        self.assertIn("cores", text)
        self.assertIn("spread", text)
        self.assertTrue(self.eventually(lambda: (b.move(1, 1), b.evaluate(tip))[1] == ""))
        # The same by keyboard.
        self.assertIn("core", b.evaluate("""(() => { const plot = document.querySelector('.gs-plot'); plot.focus();
          plot.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
          return document.querySelector('.gs-tip').innerText; })()"""))

    def check_choice(self, b):
        titles = b.evaluate("""(() => { const f = [...document.querySelectorAll('[data-figure]')].find(f => f.querySelector('select'));
          const before = f.querySelector('.gs-title').textContent, s = f.querySelector('select');
          s.value = '1'; s.dispatchEvent(new Event('change'));
          return [before, f.querySelector('.gs-title').textContent]; })()""")
        self.assertNotEqual(titles[0], titles[1])
        # A name in the legend hides its curve.
        self.assertEqual(b.evaluate("""(() => { const f = [...document.querySelectorAll('[data-figure]')].find(f => f.querySelectorAll('.gs-legend button').length > 1);
          const count = () => f.querySelectorAll('path[data-series]').length, before = count();
          f.querySelector('.gs-legend button').click(); return before - count(); })()"""), 1)

    def check_downloads(self, b):
        charts = b.evaluate("""JSON.parse(document.getElementById('gpusim-figures').textContent)
          .flatMap(f => f.views.map(v => v.view))""")
        self.assertGreater(len(charts), 15)
        # What the study was made for comes first, the simulator's own speed last.
        answer = b.evaluate("document.querySelector('header .answer').textContent")
        self.assertRegex(answer, r"\Aeach keeps most of its efficiency, [0-9.]+ % at 64 cores; "
                                 r"spread least, [0-9.]+ % at 64; its busiest core does 1\.1 times "
                                 r"the work of the average one\.\Z")
        curves = [chart for chart in charts if chart["kind"] == "lines"]
        self.assertEqual(curves[0]["title"], "Parallel efficiency")
        self.assertNotIn("scale", curves[0]["y"])
        self.assertEqual(curves[0]["y"]["min"], 0)
        self.assertEqual(curves[-1]["title"], "Simulated instructions per second")
        self.assertEqual(b.evaluate("[...document.querySelectorAll('h2')].pop().textContent"),
                         "Speed of the simulator itself")
        # What differs by less than a decade is drawn from zero, and not said to be logarithmic.
        work = next(c for c in curves if c["title"] == "Work of all cores together")
        self.assertEqual(work["y"]["scale"], "log10")
        drawn = b.evaluate(f"gpusimPage.chartSvg({json.dumps(work)})")
        self.assertIn(">instructions, relative to the fewest cores<", drawn)
        self.assertIn(">0<", drawn)
        far = json.loads(json.dumps(work))
        far["series"][0]["points"][-1][1] = 40
        self.assertIn("relative to the fewest cores (log scale)<",
                      b.evaluate(f"gpusimPage.chartSvg({json.dumps(far)})"))
        names = b.evaluate("""[...document.querySelectorAll('.gs-plot svg')].map(s => s.textContent)
          .filter(t => t.includes('(log scale)')).length""")
        self.assertGreater(names, 3)
        kinds = {chart["kind"] for chart in charts}
        self.assertEqual(kinds, {"lines", "area", "bars", "heat", "table"})
        files = b.evaluate("""JSON.parse(document.getElementById('gpusim-figures').textContent)
          .flatMap(f => f.views.map(v => v.view))
          .map(c => [c.kind === 'table' ? '' : gpusimPage.chartSvg(c), gpusimPage.chartCsv(c)])""")
        for chart, (svg, table) in zip(charts, files):
            with self.subTest(chart=chart["title"]):
                self.assertGreater(len(table.splitlines()), 1)
                self.assertNotIn("NaN", svg + table)
                if chart["kind"] != "table":
                    xml.etree.ElementTree.fromstring(svg)
        # The button itself: a link with a name, clicked.
        name = b.evaluate("""(() => { let name = ''; const click = HTMLAnchorElement.prototype.click;
          HTMLAnchorElement.prototype.click = function () { name = this.download + ' ' + this.href.slice(0, 5); };
          [...document.querySelectorAll('.gs-tools button')].find(x => x.textContent === 'SVG').click();
          HTMLAnchorElement.prototype.click = click; return name; })()""")
        self.assertEqual(name, "parallel-efficiency.svg blob:")


if __name__ == "__main__":
    if not browser.find_chromium():
        print("skipped: no Chromium is installed (Debian package chromium)")
        sys.exit(77)
    main(Pages)
