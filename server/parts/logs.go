package parts

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/internal/parts"
)

const (
	// readAtOnce is how many lines are copied from a log at once.
	readAtOnce = 256
	// stdout is the only stream that parts have.
	stdout = "Stdout"
)

// question is what a reader of a log asks for, in the kubelet's words.
type question struct {
	follow, timestamps bool
	tail               int64 // negative: all
	limit              int64 // in bytes; negative: none
	since              time.Time
}

// refusal is why a question is not answered.
type refusal struct {
	code int
	text string
}

// serveLogs answers GET <logsPath>/<namespace>/<pod>/<container>, as a kubelet does.
func (p *Parts) serveLogs(w http.ResponseWriter, r *http.Request) {
	log, no := p.logOf(strings.TrimPrefix(r.URL.Path, logsPath))
	if no == nil && r.Method != http.MethodGet {
		no = &refusal{http.StatusMethodNotAllowed, "use GET"}
	}
	var asked question
	if no == nil {
		asked, no = questionOf(r.URL.Query(), time.Now())
	}
	if no != nil {
		http.Error(w, no.text, no.code)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	asked.answer(r.Context(), log, func(text []byte) error {
		if _, err := w.Write(text); err != nil {
			return err
		}
		return control.Flush()
	})
}

// logOf is the log of a part of this server.
func (p *Parts) logOf(path string) (*actions.Log, *refusal) {
	namespace, rest, _ := strings.Cut(path, "/")
	pod, container, _ := strings.Cut(rest, "/")
	log := p.logs[container]
	if namespace != parts.Namespace || log == nil || pod != parts.PodName(container, p.name) {
		return nil, &refusal{http.StatusNotFound, fmt.Sprintf("server %s has no part %q", p.name, path)}
	}
	return log, nil
}

// questionOf reads the options; what it does not know is refused.
func questionOf(query url.Values, now time.Time) (question, *refusal) {
	q := question{tail: -1, limit: -1}
	for name := range query {
		value, err := query.Get(name), error(nil)
		switch name {
		case "follow":
			q.follow, err = strconv.ParseBool(value)
		case "timestamps":
			q.timestamps, err = strconv.ParseBool(value)
		case "previous":
			var previous bool
			if previous, err = strconv.ParseBool(value); previous {
				return q, &refusal{http.StatusBadRequest,
					"there is no previous log: the parts of a server keep their logs in memory, and a restart begins a new one"}
			}
		case "tailLines":
			q.tail, err = strconv.ParseInt(value, 10, 64)
		case "limitBytes":
			q.limit, err = strconv.ParseInt(value, 10, 64)
		case "sinceSeconds":
			var seconds int64
			seconds, err = strconv.ParseInt(value, 10, 64)
			q.since = now.Add(-time.Duration(seconds) * time.Second)
		case "sinceTime":
			q.since, err = time.Parse(time.RFC3339, value)
		case "stream":
			if value != stdout && value != "All" {
				return q, &refusal{http.StatusBadRequest, "the parts of a server have no " + value + ", only " + stdout}
			}
		default:
			return q, &refusal{http.StatusBadRequest, fmt.Sprintf("unknown option %q", name)}
		}
		if err != nil {
			return q, &refusal{http.StatusBadRequest, fmt.Sprintf("%s: %v", name, err)}
		}
	}
	return q, nil
}

// answer sends the lines that are asked for, and with follow what comes, until ctx ends or the reader is gone.
func (q *question) answer(ctx context.Context, log *actions.Log, send func([]byte) error) {
	lines := make([]actions.Line, readAtOnce)
	from, left := log.Last(q.tail), q.limit
	var text []byte
	for err := send(nil); err == nil; { // the first one says that the question is answered
		read, next, missed, changed := log.Read(from, lines)
		from, text = next, text[:0]
		if missed > 0 {
			note := actions.Line{At: time.Now(), Note: fmt.Sprintf("%d lines are missing here: the reader was slower than the log", missed)}
			text = q.append(text, &note)
		}
		for i := range lines[:read] {
			if !lines[i].At.Before(q.since) {
				text = q.append(text, &lines[i])
			}
		}
		clear(lines[:read]) // what the log has dropped is not kept here
		if q.limit >= 0 {
			text = text[:min(int64(len(text)), left)]
			left -= int64(len(text))
		}
		if len(text) > 0 {
			err = send(text)
		}
		if read > 0 && (q.limit < 0 || left > 0) {
			continue
		}
		if !q.follow || q.limit >= 0 && left == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (q *question) append(text []byte, line *actions.Line) []byte {
	if q.timestamps {
		text = line.At.UTC().AppendFormat(text, time.RFC3339Nano)
		text = append(text, ' ')
	}
	return append(line.Append(text), '\n')
}
