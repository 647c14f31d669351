package past

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/server/past"
)

// What a terminal draws differently, until plain.
const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

// printer prints changes.
type printer struct {
	lines
	namespace string
}

func (p *printer) print(w io.Writer, a past.Answer) error {
	if a.More {
		p.line("", "older changes are kept, but only the newest %d are shown", len(a.Changes))
	}
	for _, hole := range a.Missing {
		p.line("", "this server's history is missing the changes after %d up to %d", hole.After, hole.Until)
	}
	uid := ""
	for i := range a.Changes {
		c := &a.Changes[i]
		if uid != "" && c.UID != uid {
			p.line("", "\nanother object of this name:")
		}
		uid = c.UID
		p.line(bold, "%s", p.headline(a.Object, c))
		p.fields("  ", c.Fields, c.FieldsMore)
		if c.Unknown != "" {
			p.line("", "  ? %s", c.Unknown)
		}
	}
	if len(a.Changes) == 0 {
		p.line("", "%s did not change in that time", a.Object)
	}
	_, err := w.Write(p.out.Bytes())
	return err
}

// headline is when, what, who and because of what.
func (p *printer) headline(o explain.Object, c *past.Change) string {
	when := "at an unknown time"
	if !c.Time.IsZero() {
		when = c.Time.Local().Format(time.DateTime + ".000 MST")
	}
	text := fmt.Sprintf("%s  %s %s", when, o, c.Did)
	if c.By != "" {
		text += " by " + c.By
	}
	if c.Manager != "" {
		text += " with " + c.Manager
	}
	return text + fmt.Sprintf(", revision %d", c.ResourceVersion) + p.because(o, c.Cause)
}

func (p *printer) because(o explain.Object, cause *past.Cause) string {
	switch {
	case cause == nil:
		return ""
	case cause.Object.Kind == "":
		return fmt.Sprintf(", because of revision %d, which is not kept", cause.ResourceVersion)
	case cause.Object.Name == "":
		return ", because of a " + cause.Object.Kind
	}
	name := cause.Object.String()
	if cause.Object == o {
		name = "itself"
	} else if cause.Object.Namespace != "" && cause.Object.Namespace != p.namespace {
		name += " in " + cause.Object.Namespace
	}
	text := fmt.Sprintf(", because %s was %s", name, cause.Did)
	if cause.By != "" {
		text += " by " + cause.By
	}
	return text + fmt.Sprintf(" (revision %d)", cause.ResourceVersion)
}

// valueOf is a value in one line of JSON; a text without quotes if it is plain.
func valueOf(value any) string {
	text, isText := value.(string)
	if isText && text != "" && !strings.ContainsAny(text, "\n\r\t\"") && strings.TrimSpace(text) == text {
		return text
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}
