package past

import (
	"bytes"
	"fmt"
	"io"

	"github.com/setpoint-io/setpoint/server/past"
)

// lines collects what is printed. Each line is escaped before it is coloured.
type lines struct {
	escaped func(io.Writer) io.Writer
	colors  bool
	out     bytes.Buffer
}

func (l *lines) line(color, format string, args ...any) {
	var text bytes.Buffer
	fmt.Fprintf(l.escaped(&text), format, args...)
	if l.colors && color != "" {
		fmt.Fprintf(&l.out, "%s%s%s\n", color, text.String(), plain)
		return
	}
	fmt.Fprintf(&l.out, "%s\n", text.String())
}

// fields prints what differs, behind an indent.
func (l *lines) fields(indent string, fields []past.Field, more int) {
	for _, f := range fields {
		if f.Before != nil {
			l.line(red, "%s- %s: %s", indent, f.Path, valueOf(f.Before))
		}
		if f.After != nil {
			l.line(green, "%s+ %s: %s", indent, f.Path, valueOf(f.After))
		}
	}
	switch {
	case more == 1:
		l.line("", "%sand 1 more field", indent)
	case more > 1:
		l.line("", "%sand %d more fields", indent, more)
	}
}
