#!/usr/bin/env python3
"""Plots of `quern bench -o json` (or jsonl, or llama-bench's): speed against depth and against the number of sequences.
usage: plot_bench.py BENCH.json... -o FOLDER

Writes FOLDER/depth.svg and FOLDER/batch.svg, those for which there are rows. Only the standard library. The whiskers are
the 95 % interval of the median; hollow points are rows whose run was too noisy to trust."""
import argparse
import html
import json
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 70, 230, 40, 50
COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"]


def read(path):
    text = pathlib.Path(path).read_text()
    try:
        rows = json.loads(text)
    except json.JSONDecodeError:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    return rows if isinstance(rows, list) else [rows]


def series_name(row, kind, many):
    name = f"{row['model_type']} {kind}" if many else kind
    return f"{name}, {row['n_threads']} threads, {row['type_k']}/{row['type_v']}"


def interval(row, key):
    if key == "median_ts":
        samples = sorted(row["samples_ts"])
        middle = row.get(key) or samples[len(samples) // 2]
        return middle, row.get("ci_low_ts", middle), row.get("ci_high_ts", middle)
    return row[key], row[key], row[key]


def depth_series(rows):
    many, series = len({row["model_type"] for row in rows}) > 1, {}
    for row in rows:
        if row.get("n_parallel"):
            continue
        kind = row.get("test", "").split(" @")[0] or (f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}")
        series.setdefault(series_name(row, kind, many), []).append(
            (row["n_depth"], *interval(row, "median_ts"), row.get("trusted", True)))
    return {name: sorted(points) for name, points in series.items() if len(points) > 1}


def batch_series(rows):
    many, series = len({row["model_type"] for row in rows}) > 1, {}
    for row in rows:
        if not row.get("n_parallel"):
            continue
        for key, kind in (("prompt_ts", f"pp{row['n_prompt']}"), ("gen_ts", f"tg{row['n_gen']}")):
            if row.get(key):
                series.setdefault(series_name(row, kind, many), []).append(
                    (row["n_parallel"], *interval(row, key), row.get("trusted", True)))
    return {name: sorted(points) for name, points in series.items()}


def ticks(low, high):
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9)))
    while (high - low) / step < 4:
        step /= 2
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


class Plot:
    def __init__(self, title, x_name, series):
        self.series, self.parts = series, []
        self.x_high = max(point[0] for points in series.values() for point in points) or 1
        self.y_high = 1.05 * max(point[3] for points in series.values() for point in points)
        self.text(WIDTH / 2 - RIGHT / 3, 22, title, "middle", 15)
        self.text(LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 10, x_name, "middle")
        self.text(LEFT - 8, TOP - 10, "tokens/s", "end")
        self.axes()
        for number, (name, points) in enumerate(series.items()):
            self.line(number, name, points)

    def x(self, value):
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_high

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.y_high

    def text(self, x, y, text, anchor="start", size=12):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{html.escape(text)}</text>')

    def segment(self, x1, y1, x2, y2, colour="#ddd", width=1):
        self.parts.append(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="{width}" fill="none"/>')

    def axes(self):
        for value in ticks(0, self.y_high):
            self.segment(LEFT, self.y(value), WIDTH - RIGHT, self.y(value))
            self.text(LEFT - 8, self.y(value) + 4, f"{value:g}", "end")
        for value in ticks(0, self.x_high):
            self.segment(self.x(value), HEIGHT - BOTTOM, self.x(value), HEIGHT - BOTTOM + 5, "#333")
            self.text(self.x(value), HEIGHT - BOTTOM + 20, f"{value:g}", "middle")
        self.segment(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "#333")

    def line(self, number, name, points):
        colour = COLOURS[number % len(COLOURS)]
        path = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y, *_ in points)
        self.parts.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        for x, y, low, high, trusted in points:
            self.segment(self.x(x), self.y(low), self.x(x), self.y(high), colour)
            fill = colour if trusted else "white"
            self.parts.append(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5" fill="{fill}" stroke="{colour}"/>')
        y = TOP + 18 * number
        self.segment(WIDTH - RIGHT + 12, y, WIDTH - RIGHT + 30, y, colour, 2)
        self.text(WIDTH - RIGHT + 35, y + 4, name, size=11)

    def svg(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif">'
                f'<rect width="100%" height="100%" fill="white"/>{"".join(self.parts)}</svg>\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("-o", "--output", default=".", help="folder of the plots")
    arguments = parser.parse_args()
    rows = [row for path in arguments.files for row in read(path)]
    folder = pathlib.Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    plots = (("depth", "speed against depth", "tokens in the cache", depth_series(rows)),
             ("batch", "speed against the number of sequences", "sequences together", batch_series(rows)))
    made = 0
    for name, title, x_name, series in plots:
        if series:
            (folder / f"{name}.svg").write_text(Plot(title, x_name, series).svg())
            print(folder / f"{name}.svg")
            made += 1
    if not made:
        sys.exit("plot_bench.py: no row has several depths, and none is of -npl")


main()
