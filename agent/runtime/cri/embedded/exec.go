package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	utilexec "k8s.io/utils/exec"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/reap"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

const (
	// execDrainTimeMax bounds the wait for output after the command ended: a background child may hold the pipe.
	execDrainTimeMax = time.Second
	// execEndTimeMax bounds the wait for the end of a command that was killed: one in an uninterruptible system call outlasts it.
	execEndTimeMax = 2 * time.Second
	// execOutputBytesMax bounds what ExecSync keeps of each stream; the rest is dropped, as other runtimes do.
	execOutputBytesMax = 16 << 20
)

// ExecSync runs a command and returns its output. A non-zero exit is a CodeExitError; a command that does not end in
// time is killed and reported as DeadlineExceeded. timeout zero means no limit but ctx's.
func (r *Runtime) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (stdout, stderr []byte, err error) {
	c, err := r.runningContainer(id)
	if err != nil {
		return nil, nil, err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var out, errOut boundedBuffer
	err = r.exec(ctx, c, execRequest{command: command, stdout: &out, stderr: &errOut})
	if ctx.Err() != nil {
		err = status.Errorf(codes.DeadlineExceeded, "command %q timed out: %v", command, ctx.Err())
	}
	return out.Bytes(), errOut.Bytes(), err
}

// boundedBuffer keeps the first execOutputBytesMax bytes. The command's pipe may outlive the call, hence the lock.
type boundedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *boundedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Write(data[:min(len(data), execOutputBytesMax-b.buf.Len())])
	return len(data), nil
}

// Bytes copies what has been written so far.
func (b *boundedBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.buf.Bytes())
}

// execRequest is one command; streams may be nil. resize works on a terminal only.
type execRequest struct {
	command        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	tty            bool
	resize         func(terminal *os.File) (stop func())
}

// complain writes why a command did not start where the command would have: of one that failed, clients and probes learn
// the exit code and the output alone.
func (r *execRequest) complain(err error) {
	to, end := r.stderr, "\n"
	if r.tty {
		to, end = r.stdout, "\r\n"
	}
	if failed, ok := errors.AsType[utilexec.CodeExitError](err); ok && to != nil {
		_, _ = fmt.Fprint(to, failed.Err, end) // the client may have left
	}
}

// exec runs the command as a child of this process: a session ends with the agent, as its client's connection does.
func (r *Runtime) exec(ctx context.Context, c *container, req execRequest) error {
	if len(req.command) == 0 {
		return status.Error(codes.InvalidArgument, "no command")
	}
	session, err := r.startExec(c, req)
	if err != nil {
		return coded(err)
	}
	defer session.close()
	stop := context.AfterFunc(ctx, session.hangUp)
	defer stop()
	code, err := session.follow(req)
	if err != nil {
		req.complain(err)
		return err
	}
	session.drain()
	if code != 0 {
		return utilexec.CodeExitError{Code: code, Err: fmt.Errorf("command terminated with exit code %d", code)}
	}
	return nil
}

// execSession is a command that runs. reports is ours to read; closing it tells the helper to kill the command.
type execSession struct {
	helper   *exec.Cmd
	reports  *os.File
	output   sync.WaitGroup
	closers  []io.Closer
	terminal *os.File
}

func (r *Runtime) startExec(c *container, req execRequest) (*execSession, error) {
	reports, childReports, err := boot.NewReportSocket()
	if err != nil {
		return nil, err
	}
	defer childReports.Close()
	specReader, specWriter, err := os.Pipe()
	if err != nil {
		reports.Close()
		return nil, err
	}
	defer specReader.Close()
	defer specWriter.Close()
	s := &execSession{reports: reports}
	s.helper = &exec.Cmd{
		Path: r.executable.Path, Args: []string{shim.ExecName}, Dir: "/", Env: []string{"GOMAXPROCS=2"},
		ExtraFiles: []*os.File{specReader, childReports},
	}
	childEnds, err := s.connectStreams(req)
	if err == nil {
		err = s.helper.Start()
	}
	for _, end := range childEnds {
		end.Close()
	}
	if err != nil {
		s.closeFiles()
		reports.Close()
		return nil, fmt.Errorf("start exec: %w", err)
	}
	// It would keep this process's score, by which it is spared; it waits for its spec yet.
	score := strconv.FormatInt(c.limits().GetOomScoreAdj(), 10)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", s.helper.Process.Pid), []byte(score), 0); err != nil {
		r.config.Logger.Debug("score of an exec", "container", c.id, "err", err) // lowering needs CAP_SYS_RESOURCE
	}
	if err := json.NewEncoder(specWriter).Encode(c.execSpec(req)); err != nil {
		s.close()
		return nil, fmt.Errorf("start exec: %w", err)
	}
	return s, nil
}

func (c *container) execSpec(req execRequest) boot.ExecSpec {
	c.mu.Lock()
	defer c.mu.Unlock()
	process := c.record.Process
	process.Args = req.command
	process.Tty = req.tty
	if req.tty && !process.Tty {
		process.Env = append(slices.Clone(process.Env), "TERM=xterm")
	}
	return boot.ExecSpec{
		PID: c.record.PID, Cgroup: cgroupSpec(c.group), Users: c.sandbox.users(), Process: process,
	}
}

// connectStreams makes pipes rather than letting os/exec copy: the helper's end is not the command's. A stream that nobody
// wants is a /dev/null that the container cannot change; with a terminal the helper replaces all three.
func (s *execSession) connectStreams(req execRequest) (childEnds []*os.File, err error) {
	null, err := boot.OpenNull()
	if err != nil {
		return nil, err
	}
	childEnds = append(childEnds, null)
	s.helper.Stdin, s.helper.Stdout, s.helper.Stderr = null, null, null
	if req.tty {
		return childEnds, nil
	}
	if req.stdin != nil {
		reader, writer, err := os.Pipe()
		if err != nil {
			return childEnds, err
		}
		s.helper.Stdin, childEnds = reader, append(childEnds, reader)
		s.closers = append(s.closers, writer)
		go func() {
			_, _ = io.Copy(writer, req.stdin) // the command may stop reading
			writer.Close()
		}()
	}
	for _, stream := range []struct {
		to    io.Writer
		child *io.Writer
	}{{req.stdout, &s.helper.Stdout}, {req.stderr, &s.helper.Stderr}} {
		if stream.to == nil {
			continue
		}
		reader, writer, err := os.Pipe()
		if err != nil {
			return childEnds, err
		}
		*stream.child, childEnds = writer, append(childEnds, writer)
		s.closers = append(s.closers, reader)
		s.output.Go(func() { copyOutput(stream.to, reader) }) // ends with the pipe; a client that left loses the rest
	}
	return childEnds, nil
}

// outputBytes are copied at a time. Most commands are probes, which say little: they share buffers.
const outputBytes = 32 << 10

var outputBuffers = sync.Pool{New: func() any { return new([outputBytes]byte) }}

func copyOutput(to io.Writer, from io.Reader) {
	buffer := outputBuffers.Get().(*[outputBytes]byte)
	defer outputBuffers.Put(buffer)
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer[:])
}

// follow returns the command's exit code, or why there is none.
func (s *execSession) follow(req execRequest) (int, error) {
	for {
		report, terminal, err := boot.ReadReport(s.reports)
		switch {
		case errors.Is(err, io.EOF):
			return 0, status.Error(codes.Unknown, "exec ended without a result")
		case err != nil:
			return 0, coded(err)
		case report.Error != "":
			return 0, startError(report)
		case terminal != nil:
			s.serveTerminal(terminal, req)
		case report.Done:
			return report.Exited, nil
		}
	}
}

// startError is a CodeExitError for what a shell would call 126 or 127: probes and clients see a failed command.
func startError(report boot.Report) error {
	message := fmt.Errorf("failed to exec in container: %s", report.Error)
	if report.Code == 126 || report.Code == 127 {
		return utilexec.CodeExitError{Code: report.Code, Err: message}
	}
	return status.Error(codes.Unknown, message.Error())
}

func (s *execSession) serveTerminal(terminal *os.File, req execRequest) {
	s.terminal = terminal
	s.closers = append(s.closers, terminal)
	if req.resize != nil {
		stop := req.resize(terminal)
		s.closers = append(s.closers, closerFunc(stop))
	}
	if req.stdin != nil {
		go func() { _, _ = io.Copy(terminal, req.stdin) }() // ends when either side is closed
	}
	if req.stdout != nil {
		s.output.Go(func() { _, _ = io.Copy(req.stdout, terminal) }) // ends with EIO when the command's side is closed
	}
}

type closerFunc func()

func (f closerFunc) Close() error { f(); return nil }

func (s *execSession) drain() {
	drained := make(chan struct{})
	go func() { s.output.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(execDrainTimeMax):
	}
}

// hangUp makes the helper kill the command. Shutting down, not closing: follow may be reading.
func (s *execSession) hangUp() { boot.HangUp(s.reports) }

// close returns in time whatever the container does. What is left then ends with the container's cgroup.
func (s *execSession) close() {
	s.hangUp()
	ended := make(chan struct{})
	go func() {
		_ = reap.Wait(s.helper) // the report, not the helper's exit code, was the result
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(execEndTimeMax):
		_ = s.helper.Process.Kill() // it may have ended just now
	}
	s.reports.Close()
	s.closeFiles()
}

func (s *execSession) closeFiles() {
	for _, closer := range s.closers {
		closer.Close()
	}
}
