package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// event is a line of go test -json: see go doc test2json.
type event struct {
	Time    *time.Time `json:",omitempty"`
	Action  string
	Package string   `json:",omitempty"`
	Test    string   `json:",omitempty"`
	Elapsed *float64 `json:",omitempty"`
	Output  string   `json:",omitempty"`
}

// copyFrom passes on what is read, a line at a time.
func (l *lines) copyFrom(r io.Reader) error {
	for from := bufio.NewReader(r); ; {
		line, err := from.ReadBytes('\n')
		if len(line) > 0 {
			l.write(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// copyEvents passes on the events of one package but for the last, which it returns; ended is called when its tests have ended. A program
// that ended well has failed all the same if it did not say that its tests passed: one of them has called os.Exit(0). So has one whose
// output did not end.
func (l *lines) copyEvents(r io.Reader, ended func()) (last event, err error) {
	passed := false
	for decoder := json.NewDecoder(r); ; {
		var next event
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return event{}, err
		}
		if next.Test == "" && (next.Output == "PASS\n" || next.Output == "FAIL\n") {
			passed = next.Output == "PASS\n"
			ended()
		}
		if last.Action != "" {
			if err := l.event(last); err != nil {
				return event{}, err
			}
		}
		last = next
	}
	if !passed || last.Action != "pass" {
		if last.Action == "output" {
			err = l.event(last)
		}
		last.Action, last.Output = "fail", ""
	}
	if last.Test != "" { // the program ended within a test
		err = errors.Join(err, l.event(last))
		last.Test = ""
	}
	return last, err
}

// end writes the last event of a package, and before it the line that the go command adds to what the program said.
func (l *lines) end(last event) error {
	word, seconds := "ok  ", 0.0
	if last.Action != "pass" {
		word = "FAIL"
	}
	if last.Elapsed != nil {
		seconds = *last.Elapsed
	}
	line := fmt.Sprintf("%s\t%s\t%.3fs\n", word, last.Package, seconds)
	return errors.Join(l.event(event{Time: last.Time, Action: "output", Package: last.Package, Output: line}), l.event(last))
}

func (l *lines) event(e event) error {
	text, err := json.Marshal(e)
	if err == nil {
		l.write(append(text, '\n'))
	}
	return err
}
