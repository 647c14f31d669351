package past

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/server/past"
)

// diffPrinter prints what happened between two times.
type diffPrinter struct{ lines }

// colorOf is that of the lines of what happened.
var colorOf = map[string]string{"created": green, "deleted": red}

func (p *diffPrinter) print(w io.Writer, d *past.Difference) error {
	for _, hole := range d.Missing {
		p.line("", "this server's history is missing the changes after %d up to %d", hole.After, hole.Until)
	}
	for i := range d.Groups {
		p.group(&d.Groups[i])
	}
	if len(d.Groups) == 0 {
		p.line("", "nothing changed")
	}
	if d.Left > 0 {
		p.line("", "%d more objects changed and are left out: ask for one kind, one namespace or a shorter time", d.Left)
	}
	if len(d.LeftKinds) > 0 {
		p.line("", "left out unless they are named: %s", strings.Join(d.LeftKinds, ", "))
	}
	if len(d.Forbidden) > 0 {
		p.line("", "left out because you may not list them: %s", strings.Join(d.Forbidden, ", "))
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

func (p *diffPrinter) group(g *past.Group) {
	title := g.Kind
	if g.APIGroup != "" {
		title += "." + g.APIGroup
	}
	if g.Namespace != "" {
		title += " in " + g.Namespace
	}
	p.line(bold, "%s", title)
	for i := range g.Objects {
		p.object(&g.Objects[i])
	}
}

func (p *diffPrinter) object(c *past.Changed) {
	text := "  " + c.Name + " " + c.Did + byWhom(c)
	if c.Writes > 1 {
		text += fmt.Sprintf(", in %d writes", c.Writes)
	}
	if !c.Time.IsZero() {
		text += ", last at " + c.Time.Local().Format(time.DateTime+".000 MST")
	}
	p.line(colorOf[c.Did], "%s", text)
	p.fields("    ", c.Fields, c.FieldsMore)
	switch {
	case c.Unknown != "":
		p.line("", "    ? %s", c.Unknown)
	case c.Did == "changed" && len(c.Fields) == 0 && c.FieldsMore == 0:
		p.line("", "    and is as it was")
	}
}

// byWhom names the writers.
func byWhom(c *past.Changed) string {
	var names []string
	for _, writer := range c.By {
		name := writer.User
		if writer.FieldManager != "" {
			name += " with " + writer.FieldManager
		}
		if name != "" {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if c.ByMore {
		names = append(names, "others")
	}
	if len(names) == 0 {
		return ""
	}
	return " by " + strings.Join(names, ", ")
}
