package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// visit asks this machine for a URL, whatever its host's address is.
func visit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: visit TIME REGEXP URL")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	want, err := regexp.Compile(args[1])
	ts.Check(err)
	deadline, tick := time.Now().Add(limit), time.NewTicker(pollInterval)
	defer tick.Stop()
	for ; ; <-tick.C {
		got, err := visited(args[2])
		if err == nil && want.MatchString(got) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("visit: not within %s: %v %s", limit, err, got)
		}
	}
}

// visited dials by itself: the network namespace of a script is that of its thread.
func visited(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", u.Port()))
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	subject := ""
	if u.Scheme == "https" {
		secure := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: true})
		if err := secure.Handshake(); err != nil {
			return "", err
		}
		subject = " " + secure.ConnectionState().PeerCertificates[0].Subject.String()
		conn = secure
	}
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	if err := req.Write(conn); err != nil {
		return "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if to := answer.Header.Get("Location"); to != "" {
		text = []byte(to)
	}
	return fmt.Sprintf("%d %s%s", answer.StatusCode, text, subject), err
}
