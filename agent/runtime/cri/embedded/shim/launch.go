package shim

import (
	"encoding/json"
	"os"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
)

// launch holds the descriptors of one start: what the child gets, and our other ends.
type launch struct {
	child                 []*os.File
	stdin, stdout, stderr *os.File // ours
	spec                  *os.File // ours
	reports               *os.File // ours
}

func newLaunch(req *StartRequest) (*launch, error) {
	l := &launch{}
	if err := l.openStreams(req); err != nil {
		l.closeAll()
		return nil, err
	}
	specReader, specWriter, err := os.Pipe()
	if err != nil {
		l.closeAll()
		return nil, err
	}
	l.spec = specWriter
	reports, childReports, err := boot.NewReportSocket()
	if err != nil {
		specReader.Close()
		l.closeAll()
		return nil, err
	}
	l.reports = reports
	l.child = append(l.child, specReader, childReports)
	return l, nil
}

// openStreams makes stdin, stdout and stderr, in this order.
func (l *launch) openStreams(req *StartRequest) error {
	stdin, err := boot.OpenNull()
	if err == nil && req.Stdin && !req.Spec.Process.Tty {
		stdin.Close()
		stdin, l.stdin, err = os.Pipe()
	}
	if err != nil {
		return err
	}
	l.child = append(l.child, stdin)
	for _, ours := range []**os.File{&l.stdout, &l.stderr} {
		reader, writer, err := os.Pipe()
		if err != nil {
			return err
		}
		*ours = reader
		l.child = append(l.child, writer)
	}
	return nil
}

func (l *launch) childFiles() []uintptr {
	files := make([]uintptr, len(l.child))
	for i, file := range l.child {
		files[i] = file.Fd()
	}
	return files
}

func (l *launch) sendSpec(spec *boot.Spec) {
	// A child that dies early breaks the pipe; its report, or the lack of one, is the error that counts.
	_ = json.NewEncoder(l.spec).Encode(spec)
	l.spec.Close()
}

func (l *launch) closeChildEnds() {
	for _, file := range l.child {
		file.Close()
	}
	l.child = nil
}

func (l *launch) closeOutput() {
	l.stdout.Close()
	l.stderr.Close()
}

func (l *launch) closeOurEnds() {
	for _, file := range []*os.File{l.stdin, l.stdout, l.stderr, l.reports} {
		if file != nil {
			file.Close()
		}
	}
}

func (l *launch) closeAll() {
	l.closeChildEnds()
	l.closeOurEnds()
	if l.spec != nil {
		l.spec.Close()
	}
}
