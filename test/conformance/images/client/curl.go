package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"time"
)

// Exit codes of curl.
const (
	exitUsage       = 2
	exitUnresolved  = 6
	exitUnconnected = 7
	exitHTTP        = 22
	exitTimeout     = 28
)

type request struct {
	url, method, data, output, format, from string
	headers                                 list
	connectSeconds, allSeconds              float64
	insecure, head, include, fail, location bool
}

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func curl(args []string) (code int, err error) {
	r, err := parse(args)
	if err != nil {
		return exitUsage, err
	}
	ctx := context.Background()
	if r.allSeconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, seconds(r.allSeconds))
		defer cancel()
	}
	answer, err := r.send(ctx)
	if err != nil {
		return exitOf(err), err
	}
	defer answer.Body.Close()
	return r.print(answer)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// parse takes flags before and behind the address, and short ones together, as curl does.
func parse(args []string) (r request, err error) {
	f := flag.NewFlagSet("curl", flag.ContinueOnError)
	var ignored bool
	for _, name := range []string{"g", "q", "s", "S", "v"} {
		f.BoolVar(&ignored, name, false, "")
	}
	f.BoolVar(&r.insecure, "k", false, "")
	f.BoolVar(&r.head, "I", false, "")
	f.BoolVar(&r.include, "i", false, "")
	f.BoolVar(&r.fail, "f", false, "")
	f.BoolVar(&r.location, "L", false, "")
	f.StringVar(&r.method, "X", "", "")
	f.StringVar(&r.data, "d", "", "")
	f.StringVar(&r.output, "o", "", "")
	f.StringVar(&r.format, "w", "", "")
	f.StringVar(&r.from, "interface", "", "")
	f.Var(&r.headers, "H", "")
	f.Float64Var(&r.connectSeconds, "connect-timeout", 0, "")
	f.Float64Var(&r.allSeconds, "max-time", 0, "")
	for rest := apart(args); len(rest) > 0; rest = f.Args() {
		if !strings.HasPrefix(rest[0], "-") {
			r.url, rest = rest[0], rest[1:]
		}
		if err := f.Parse(rest); err != nil {
			return r, err
		}
	}
	if !strings.Contains(r.url, "://") {
		r.url = "http://" + r.url
	}
	return r, nil
}

// apart makes -gqs into -g -q -s.
func apart(args []string) []string {
	var all []string
	for _, arg := range args {
		if len(arg) < 3 || arg[0] != '-' || arg[1] == '-' {
			all = append(all, arg)
			continue
		}
		for _, letter := range arg[1:] {
			all = append(all, "-"+string(letter))
		}
	}
	return all
}

func (r request) send(ctx context.Context) (*http.Response, error) {
	method := r.method
	switch {
	case method == "" && r.head:
		method = http.MethodHead
	case method == "" && r.data != "":
		method = http.MethodPost
	}
	ask, err := http.NewRequestWithContext(ctx, method, r.url, strings.NewReader(r.data))
	if err != nil {
		return nil, err
	}
	for _, header := range r.headers {
		key, value, _ := strings.Cut(header, ":")
		ask.Header.Set(key, strings.TrimSpace(value))
	}
	dialer := &net.Dialer{Timeout: seconds(r.connectSeconds)}
	if r.from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(r.from)}
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: r.insecure}, //nolint:gosec // -k says so
	}}
	if !r.location {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return client.Do(ask)
}

func exitOf(err error) int {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return exitUnresolved
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return exitTimeout
	}
	return exitUnconnected
}

func (r request) print(answer *http.Response) (code int, err error) {
	out := io.Writer(os.Stdout)
	if r.output != "" {
		file, err := os.OpenFile(r.output, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return exitUsage, err
		}
		defer file.Close()
		out = file
	}
	if r.include || r.head {
		head, err := httputil.DumpResponse(answer, false)
		if err != nil {
			return exitHTTP, err
		}
		_, _ = out.Write(head)
	}
	if r.fail && answer.StatusCode >= http.StatusBadRequest {
		return exitHTTP, fmt.Errorf("the server says %s", answer.Status)
	}
	if _, err := io.Copy(out, answer.Body); err != nil {
		return exitOf(err), err
	}
	fmt.Print(strings.NewReplacer("%{http_code}", fmt.Sprint(answer.StatusCode), `\n`, "\n").Replace(r.format))
	return 0, nil
}
