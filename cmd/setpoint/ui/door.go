package ui

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"

	"github.com/setpoint-io/setpoint/cmd/setpoint/clusterstatus"
	"github.com/setpoint-io/setpoint/web"
)

const (
	// pagePolicy has the page run its own modules, talk to this door, and nothing else; answerPolicy is for what a server answers, should
	// a browser take it for a page.
	pagePolicy = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	answerPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"
	// serversPath is where the page asks how the servers are; below apiPath the servers answer.
	serversPath = "/servers"
	apiPath     = "/server"
)

// door answers whoever comes in: files of the page, how the servers are, and what they answer.
type door struct {
	secret  string
	servers *servers
	files   http.Handler
	api     http.Handler
	orders  orders
}

func newDoor(secret string, servers *servers, whatIf asker) http.Handler {
	d := &door{secret: secret, servers: servers, files: http.FileServerFS(web.Files), orders: orders{servers: servers, whatIf: whatIf}}
	d.api = &httputil.ReverseProxy{
		Rewrite: onward, Transport: servers, FlushInterval: -1, ModifyResponse: plainly, ErrorHandler: noAnswer,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // the page says it
	}
	return d
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	if no := comesIn(r, d.secret); no.code != 0 {
		no.say(w)
		return
	}
	within := strings.TrimPrefix(r.URL.Path, "/"+d.secret)
	asked, isAPI := strings.CutPrefix(within, apiPath+"/")
	switch {
	case isAPI:
		d.ask(w, r, "/"+asked)
	case d.orders.has(within):
		d.orders.serve(w, r, within)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		refusal{http.StatusMethodNotAllowed, "want GET"}.say(w)
	case within == "":
		http.Redirect(w, r, "/"+d.secret+"/", http.StatusFound)
	case within == serversPath:
		d.tellServers(w, r)
	default:
		r.URL.Path, r.URL.RawPath = within, ""
		d.files.ServeHTTP(w, r)
	}
}

// guard sets what browsers obey on every answer.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// ask has a server answer what may be asked.
func (d *door) ask(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set("Content-Security-Policy", answerPolicy)
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = path, ""
	if no := mayBeAsked(r); no.code != 0 {
		no.say(w)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		refusal{http.StatusRequestEntityTooLarge, "a question has at most 64 KiB"}.say(w)
		return
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	d.api.ServeHTTP(w, r)
}

// onward sends nothing of a browser's headers but what is wanted: no credentials, cookies or names of users.
func onward(p *httputil.ProxyRequest) {
	headers := http.Header{"User-Agent": {"setpoint-ui"}}
	for _, name := range []string{"Accept", "Content-Type"} {
		if value := p.In.Header.Get(name); value != "" {
			headers.Set(name, value)
		}
	}
	p.Out.Header = headers
}

// plainly keeps of an answer's headers what the page reads; those of guard stand.
func plainly(r *http.Response) error {
	r.Header = http.Header{"Content-Type": r.Header["Content-Type"]}
	return nil
}

// noAnswer tells that no server can be reached, or none with a certificate that has expired.
func noAnswer(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), statusOf(err))
}

// tellServers tells how the servers are, as `setpoint cluster status -o json` does. Servers that do not accept the credentials answer, so
// the page goes on showing how they were.
func (d *door) tellServers(w http.ResponseWriter, r *http.Request) {
	configs, err := d.servers.configs()
	if len(configs) == 0 {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	report := clusterstatus.Fetch(r.Context(), configs)
	if report.Unauthorized() {
		d.servers.stay("", true)
		http.Error(w, report.Verdict.Text, http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(report) // the browser is gone if this fails
}
