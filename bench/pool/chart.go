package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/taskd-go/task/bench/internal/measure"
)

// chart draws the rates of the small calls, a group of bars for each contender. It omits ants,
// whose bars would dwarf the others.
func chart(file string, r measure.Results) error {
	cases := []measure.Case{newCase(kindSync, 64, 1), newCase(kindSync, 64, 8), newCase(kindSync, 64, 64)}
	colors := []color.Color{
		color.RGBA{R: 0xb3, G: 0xcd, B: 0xe3, A: 0xff},
		color.RGBA{R: 0x6b, G: 0x9f, B: 0xc8, A: 0xff},
		color.RGBA{R: 0x1f, G: 0x5a, B: 0x8e, A: 0xff},
	}
	var names []string
	for _, c := range slices.Backward(contenders()) { // the first is drawn at the top
		if c.name != nameAnts && r.HasCase(c.name, cases[0]) {
			names = append(names, c.name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("chart: it shows %s and the like, which was not measured", cases[0])
	}
	p := plot.New()
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label,
		&p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Variant = "Sans"
	}
	p.Title.Padding = vg.Millimeter * 3
	p.Title.Text = "Calls per second, 64 bytes there and back, two worker processes"
	p.X.Min = 0
	p.X.Label.Text = "thousand calls/s"
	p.X.Tick.Marker = plot.TickerFunc(wholeTicks)
	const barWidth = vg.Length(7)
	for i, c := range cases {
		rates := make(plotter.Values, len(names))
		for n, name := range names {
			if x := r.Median(name, c, measure.Rate); measure.Measured(x) {
				rates[n] = math.Round(x / 1000)
			}
		}
		bars, err := plotter.NewBarChart(rates, barWidth)
		if err != nil {
			return fmt.Errorf("chart: %w", err)
		}
		bars.Horizontal = true
		bars.Color = colors[i]
		bars.LineStyle.Width = 0
		bars.Offset = barWidth * vg.Length(len(cases)/2-i)
		p.Add(bars)
		p.Legend.Add(callersText(c.Callers), bars)
	}
	p.NominalY(names...)
	p.X.Max *= 1.05
	p.Add(verticalLines())
	if err := p.Save(22*vg.Centimeter, 13*vg.Centimeter, file); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	return nil
}

func wholeTicks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		ticks[i].Label = strings.TrimSuffix(ticks[i].Label, ".00")
	}
	return ticks
}

func verticalLines() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Width = 0
	return g
}
