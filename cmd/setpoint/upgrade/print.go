package upgrade

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
)

// partsShown is how many parts a table has; the JSON has all.
const partsShown = 100

// Print writes a plan for people.
func (p *Plan) Print(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "PART\tNAME\tSETPOINT\tKUBERNETES\tFEATURE LEVEL\t")
	for _, part := range p.Parts[:min(len(p.Parts), partsShown)] {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", part.Kind, part.Name, cmp.Or(part.Setpoint, "-"), cmp.Or(part.Kubernetes, "-"), level(part), remark(part))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := len(p.Parts) - partsShown; more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
	fmt.Fprintf(out, "\nTo Setpoint %s (Kubernetes %s, feature level %d):\n", p.To.Setpoint, p.To.Kubernetes, p.To.Level)
	for _, why := range p.Against {
		fmt.Fprintf(out, "  first: %s\n", why)
	}
	for i, step := range p.Steps {
		fmt.Fprintf(out, "  %d. %s\n", i+1, step)
	}
	if len(p.Steps)+len(p.Against) == 0 {
		fmt.Fprintln(out, "  nothing is to be done")
	}
	return nil
}

func level(p Part) string {
	if p.Level == 0 {
		return "-"
	}
	return fmt.Sprint(p.Level)
}

func remark(p Part) string {
	switch {
	case p.Leader && !p.Current:
		return "leader: last of the servers"
	case p.Leader:
		return "leader"
	}
	return ""
}

// Err is an error if something speaks against the upgrade.
func (p *Plan) Err() error {
	switch len(p.Against) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("not yet: %s", p.Against[0])
	}
	return fmt.Errorf("not yet: %s, and %d more", p.Against[0], len(p.Against)-1)
}
