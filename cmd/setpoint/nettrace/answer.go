package nettrace

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Verdict says what becomes of a connection.
type Verdict string

// Verdicts, the worst last.
const (
	// Arrives at the target.
	Arrives Verdict = "arrives"
	// Unsure: it arrives if what the API does not say is as one expects.
	Unsure Verdict = "unsure"
	// Partly: at some of several endpoints, so some connections fail.
	Partly Verdict = "partly"
	// Stops before the target.
	Stops Verdict = "stops"
)

// Answer is the way of a packet.
type Answer struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Verdict Verdict `json:"verdict"`
	// Why is the first thing that stops it, Change what would mend that.
	Why    string `json:"why,omitempty"`
	Change string `json:"change,omitempty"`
	Steps  []Step `json:"steps"`
}

// Step is one thing that decides about the packet.
type Step struct {
	// Step is what decides: dns, service, endpoint, egress, ingress, route, firewall, port.
	Step    string  `json:"step"`
	Verdict Verdict `json:"verdict"`
	Object  string  `json:"object"`
	Says    string  `json:"says"`
	Change  string  `json:"change,omitempty"`
}

// Print prints the verdict and then the steps.
func Print(w io.Writer, a Answer) error {
	switch a.Verdict {
	case Arrives:
		fmt.Fprintf(w, "%s reaches %s\n", a.From, a.To)
	case Unsure:
		fmt.Fprintf(w, "%s reaches %s, unless %s\n", a.From, a.To, a.Why)
	case Partly:
		fmt.Fprintf(w, "%s reaches %s on some connections only: %s\n", a.From, a.To, a.Why)
	case Stops:
		fmt.Fprintf(w, "%s does not reach %s: %s\n", a.From, a.To, a.Why)
	}
	if a.Change != "" {
		fmt.Fprintf(w, "  change: %s\n", a.Change)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "STEP\tVERDICT\tOBJECT\tBECAUSE")
	for _, s := range a.Steps {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Step, s.Verdict, s.Object, s.Says)
	}
	return t.Flush()
}
