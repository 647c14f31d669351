package past

import (
	"bytes"
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
	colors    bool
	namespace string
}

// print escapes each line before it is coloured.
func (p printer) print(w io.Writer, escaped func(io.Writer) io.Writer, a past.Answer) error {
	var out bytes.Buffer
	line := func(color, format string, args ...any) {
		var text bytes.Buffer
		fmt.Fprintf(escaped(&text), format, args...)
		if p.colors && color != "" {
			fmt.Fprintf(&out, "%s%s%s\n", color, text.String(), plain)
			return
		}
		fmt.Fprintf(&out, "%s\n", text.String())
	}
	if a.More {
		line("", "older changes are kept, but only the newest %d are shown", len(a.Changes))
	}
	for _, hole := range a.Missing {
		line("", "this server's history is missing the changes after %d up to %d", hole.After, hole.Until)
	}
	uid := ""
	for i := range a.Changes {
		c := &a.Changes[i]
		if uid != "" && c.UID != uid {
			line("", "\nanother object of this name:")
		}
		uid = c.UID
		line(bold, "%s", p.headline(a.Object, c))
		for _, f := range c.Fields {
			if f.Before != nil {
				line(red, "  - %s: %s", f.Path, valueOf(f.Before))
			}
			if f.After != nil {
				line(green, "  + %s: %s", f.Path, valueOf(f.After))
			}
		}
		if c.FieldsMore > 0 {
			line("", "  and %d more fields", c.FieldsMore)
		}
		if c.Unknown != "" {
			line("", "  ? %s", c.Unknown)
		}
	}
	if len(a.Changes) == 0 {
		line("", "%s did not change in that time", a.Object)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// headline is when, what, who and because of what.
func (p printer) headline(o explain.Object, c *past.Change) string {
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

func (p printer) because(o explain.Object, cause *past.Cause) string {
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
