package actions

import (
	"fmt"
	"strconv"
	"time"
)

// timeFormat is the time of a line: UTC, with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

// Line is one action of a loop. Its fields are kept as they are: nothing is formatted until somebody reads.
type Line struct {
	// At is when the action had its result.
	At time.Time
	// Note is a text instead of an action; the other fields are empty then.
	Note string
	// User is the client of the API whose write it is; empty: it is a loop's.
	User string
	// Loop is the name of the controller, Key what its pass was about; nil: the object of the cause.
	Loop string
	Key  func() string
	// Wanted and Observed are the gap that the action is to close, as the loop saw it; empty: unknown.
	Wanted, Observed Amount
	// Verb is what was done to Object, as in "create" and "pods default/web-x".
	Verb, Object string
	// Code is the HTTP status of the answer, 0 without one, Failure why it was not done.
	Code    int
	Failure string
	// Took is how long the action took; 0: it is unknown.
	Took time.Duration
	// Cause is the object, as it was read, whose state led to the action.
	Cause Cause
}

// Amount is a text, or a number where there is none; the zero value is unknown.
type Amount struct {
	Text   string
	Number int32
	Known  bool
}

// Number is the Amount of n.
func Number(n int32) Amount { return Amount{Number: n, Known: true} }

// Text is the Amount that says s.
func Text(s string) Amount { return Amount{Text: s, Known: s != ""} }

func (a Amount) String() string {
	if a.Text != "" {
		return a.Text
	}
	return strconv.Itoa(int(a.Number))
}

// Cause names an object at one version.
type Cause struct {
	// Kind is such as Deployment. Version is the resourceVersion.
	Kind, Namespace, Name, Version string
}

func (c Cause) object() string {
	if c.Namespace == "" {
		return c.Name
	}
	return c.Namespace + "/" + c.Name
}

// Append appends the line, without its end. Values are quoted if a space or a quote is in them.
func (l *Line) Append(b []byte) []byte {
	b = l.At.UTC().AppendFormat(b, timeFormat)
	if l.Note != "" {
		return append(append(b, ' '), l.Note...)
	}
	if l.User != "" {
		b = add(b, "user", l.User)
	} else {
		b = add(add(b, "loop", l.Loop), "object", l.About())
	}
	if l.Wanted.Known {
		b = add(b, "wanted", l.Wanted.String())
	}
	if l.Observed.Known {
		b = add(b, "observed", l.Observed.String())
	}
	b = add(b, "done", l.Did())
	if l.Took > 0 {
		b = add(b, "took", l.Took.Round(time.Microsecond).String())
	}
	if because := l.Because(); because != "" {
		b = add(b, "because", because)
	}
	return b
}

// Because names the object that led to the action, and its version; empty: it is unknown.
func (l *Line) Because() string {
	if l.Cause.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s %s, version %s", l.Cause.Kind, l.Cause.object(), l.Cause.Version)
}

// About is what the pass of the loop was about.
func (l *Line) About() string {
	if l.Key == nil {
		return l.Cause.object()
	}
	return l.Key()
}

// Done reports whether the action was accepted.
func (l *Line) Done() bool { return l.Failure == "" && (l.Code/100 == 2 || l.Code == 0) }

// Did says what was done, or that it was refused.
func (l *Line) Did() string {
	switch {
	case l.Verb == "":
		return l.Failure
	case l.Failure != "":
		return l.Verb + " " + l.Object + " refused: " + l.Failure
	case l.Done():
		return l.Verb + " " + l.Object
	}
	return fmt.Sprintf("%s %s refused: %d", l.Verb, l.Object, l.Code)
}

func add(b []byte, name, value string) []byte {
	b = append(append(append(b, ' '), name...), '=')
	for _, r := range value {
		if r <= ' ' || r == '"' || r == 0x7f {
			return strconv.AppendQuote(b, value)
		}
	}
	if value == "" {
		return append(b, '-')
	}
	return append(b, value...)
}
