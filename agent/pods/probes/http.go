package probes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// redirectsMax is how many redirects on the same host a probe follows.
const redirectsMax = 10

// HeaderBytesMax is how large the header of an answer may be: a probe keeps it in memory.
const HeaderBytesMax = 64 << 10

// http succeeds on 200..399. A redirect to another host is not followed and
// counts as success with a warning: the pod answered.
func (p *prober) http(ctx context.Context, h *corev1.HTTPGetAction) result {
	req, err := HTTPRequest(ctx, h, p.Container, p.IP, p.cfg.UserAgent)
	if err != nil {
		return failed("%v", err)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return failed("%s", trimURL(err))
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, outputMaxBytes))
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return result{ok: true, warning: fmt.Sprintf("Probe terminated redirects, Response body: %s", body)}
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return result{ok: true, message: string(body)}
	default:
		return failed("HTTP probe failed with statuscode: %d", resp.StatusCode)
	}
}

// HTTPRequest is the request of an httpGet probe or hook.
func HTTPRequest(ctx context.Context, h *corev1.HTTPGetAction, c *corev1.Container, ip, userAgent string) (*http.Request, error) {
	port, err := Port(h.Port, c)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(h.Path)
	if err != nil {
		u = &url.URL{Path: h.Path}
	}
	u.Scheme = strings.ToLower(orHost(string(h.Scheme), "http"))
	u.Host = net.JoinHostPort(orHost(h.Host, ip), strconv.Itoa(port))
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, header := range h.HTTPHeaders {
		req.Header.Add(header.Name, header.Value)
	}
	setHeaders(req, userAgent)
	return req, nil
}

// setHeaders adds ours where the user set none; an empty value removes one.
func setHeaders(req *http.Request, userAgent string) {
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	for name, value := range map[string]string{"User-Agent": userAgent, "Accept": "*/*"} {
		if _, set := req.Header[name]; !set {
			req.Header.Set(name, value)
		} else if req.Header.Get(name) == "" {
			req.Header[name] = nil
		}
	}
}

// httpClient opens a connection for each request, so that a probe tests
// accepting, too; certificates are not checked, the pod's name is not in them.
var httpClient = &http.Client{
	Transport: &http.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives:  true,
		Proxy:              nil,
		DisableCompression: true,
		DialContext:        dialer.DialContext,

		MaxResponseHeaderBytes: HeaderBytesMax,
	},
	CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if req.URL.Hostname() != via[0].URL.Hostname() {
			return http.ErrUseLastResponse
		}
		if len(via) >= redirectsMax {
			return errors.New("stopped after 10 redirects")
		}
		return nil
	},
}

// trimURL gives upstream's form: Get "URL": cause.
func trimURL(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok && u.Timeout() {
		return fmt.Sprintf("Get %q: %v (Client.Timeout exceeded while awaiting headers)", u.URL, u.Err)
	}
	return err.Error()
}
