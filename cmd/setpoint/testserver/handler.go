package testserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint"
)

const (
	// clustersPath is where clusters are made, by the only request that has a body.
	clustersPath = "/clusters"
	// advanceMax is how much time passes at most by one request, which takes seconds for an hour.
	advanceMax = 7 * 24 * time.Hour
)

// Clusters is what POST /clusters asks for. The zero value is an API server with all control loops and no nodes.
type Clusters struct {
	// Nodes are simulated.
	Nodes int `json:"nodes,omitempty"`
	// Replicas are servers that share a log; 0: 1. Several cannot be forked.
	Replicas int `json:"replicas,omitempty"`
	// APIOnly leaves the control loops out, as envtest does; Loops are those that run, by their names, if not all.
	APIOnly bool     `json:"apiOnly,omitempty"`
	Loops   []string `json:"loops,omitempty"`
	// DisabledAdmission are admission plugins that are left out.
	DisabledAdmission []string `json:"disabledAdmission,omitempty"`
	// Session is the one with which the cluster ends; "": it stays until it is deleted, or the server ends.
	Session string `json:"session,omitempty"`
}

// Answer is what the server says.
type Answer struct {
	Protocol int    `json:"protocol,omitempty"`
	Version  string `json:"version,omitempty"`
	// Cluster, Mark and Session are the names of what was made.
	Cluster string `json:"cluster,omitempty"`
	Mark    string `json:"mark,omitempty"`
	Session string `json:"session,omitempty"`
	// Why is what holds an object, a line each.
	Why []string `json:"why,omitempty"`
	// Error is why it was not done.
	Error string `json:"error,omitempty"`
}

// refusal is an error that is the client's.
type refusal struct {
	code int
	text string
}

// Error implements error.
func (r refusal) Error() string { return r.text }

func badRequest(format string, args ...any) error {
	return refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) error {
	return refusal{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

// asked is a refusal as it is, and another error as that of who asked.
func asked(err error) error {
	if _, is := errors.AsType[refusal](err); is || err == nil {
		return err
	}
	return badRequest("%v", err)
}

// Handler answers the requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", s.answering(func(*http.Request) (Answer, error) {
		return Answer{Protocol: Protocol, Version: setpoint.Version}, nil
	}))
	mux.HandleFunc("POST "+clustersPath, s.answering(s.create))
	mux.HandleFunc("POST /clusters/{cluster}/fork", s.answering(s.fork))
	mux.HandleFunc("POST /clusters/{cluster}/marks", s.answering(s.mark))
	mux.HandleFunc("POST /clusters/{cluster}/reset/{mark}", s.answering(s.reset))
	mux.HandleFunc("POST /clusters/{cluster}/advance/{duration}", s.answering(s.advance))
	mux.HandleFunc("POST /clusters/{cluster}/nodes/{node}/{state}", s.answering(s.switchNode))
	mux.HandleFunc("DELETE /clusters/{cluster}", s.answering(s.remove))
	mux.HandleFunc("GET /clusters/{cluster}/kubeconfig", s.kubeconfig)
	mux.HandleFunc("GET /clusters/{cluster}/why/{namespace}/{kind}/{name}", s.answering(s.why))
	mux.HandleFunc("GET /session", s.session)
	mux.HandleFunc("/", s.answering(func(r *http.Request) (Answer, error) {
		return Answer{}, notFound("there is no %s %s: setpoint testserver --help lists the requests", r.Method, r.URL.Path)
	}))
	return mux
}

// clean refuses what would be ignored: query parameters, and a body of what is not POST /clusters.
func clean(r *http.Request) error {
	switch {
	case r.URL.RawQuery != "":
		return badRequest("%s %s: it takes no query parameters", r.Method, r.URL.Path)
	case r.ContentLength != 0 && r.URL.Path != clustersPath:
		return badRequest("%s %s: it takes no body", r.Method, r.URL.Path)
	}
	return nil
}

// answering makes a handler of a function.
func (s *Server) answering(do func(r *http.Request) (Answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer s.enter()()
		r.Body = http.MaxBytesReader(w, r.Body, bodyMax)
		answer, err := Answer{}, clean(r)
		if err == nil {
			answer, err = do(r)
		}
		say(w, answer, err)
	}
}

func say(w http.ResponseWriter, answer Answer, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		code, answer := http.StatusInternalServerError, Answer{Error: err.Error()}
		if refused, ok := errors.AsType[refusal](err); ok {
			code = refused.code
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(answer) // who asked has gone if it fails
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// decode reads the body, which may be empty, and nothing after it.
func decode(body io.Reader, wanted *Clusters) error {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(wanted); err != nil && !errors.Is(err, io.EOF) {
		return badRequest("the body is not a cluster: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return badRequest("the body is not a cluster: there is more after the cluster")
	}
	return nil
}

func (s *Server) create(r *http.Request) (answer Answer, err error) {
	var wanted Clusters
	if err := decode(r.Body, &wanted); err != nil {
		return answer, err
	}
	answer.Cluster, err = s.hold(r.Context(), wanted.Session, wanted.Nodes, func(ctx context.Context) (*setpoint.Cluster, error) {
		return setpoint.Start(ctx, setpoint.Config{InMemory: true, SimulatedNodes: wanted.Nodes, Replicas: wanted.Replicas,
			APIOnly: wanted.APIOnly, Loops: wanted.Loops, DisabledAdmission: wanted.DisabledAdmission,
			Lessons: true, // so that commands can do what these requests do
		})
	})
	return answer, err
}

// named is the cluster that a request is about.
func (s *Server) named(r *http.Request) (*cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("cluster")
	if c := s.clusters[id]; c != nil {
		return c, nil
	}
	return nil, notFound("there is no cluster %q: it was deleted, or its session has ended", id)
}

func (s *Server) fork(r *http.Request) (answer Answer, err error) {
	c, err := s.named(r)
	if err != nil {
		return answer, err
	}
	image, err := c.image(r.Context())
	if err != nil {
		return answer, asked(err)
	}
	answer.Cluster, err = s.hold(r.Context(), c.session, c.nodes, image.Start)
	return answer, err
}

func (s *Server) mark(r *http.Request) (answer Answer, err error) {
	c, err := s.named(r)
	if err != nil {
		return answer, err
	}
	s.mu.Lock()
	answer.Mark = s.name("mark-")
	s.mu.Unlock()
	if err := c.mark(r.Context(), answer.Mark); err != nil {
		return Answer{}, asked(err)
	}
	return answer, nil
}

func (s *Server) reset(r *http.Request) (answer Answer, err error) {
	c, err := s.named(r)
	if err == nil {
		err = c.reset(r.Context(), r.PathValue("mark"), func(ctx context.Context, from *setpoint.Image) (*setpoint.Cluster, error) {
			return s.start(ctx, from.Start)
		})
	}
	return answer, err
}

func (s *Server) advance(r *http.Request) (answer Answer, err error) {
	c, err := s.named(r)
	if err != nil {
		return answer, err
	}
	d, err := time.ParseDuration(r.PathValue("duration"))
	if err != nil || d < 0 {
		return answer, badRequest("%q is no time that passes: write 90s, 7m or 1h30m", r.PathValue("duration"))
	}
	if d > advanceMax {
		return answer, badRequest("%s is too long: at most %v pass at once", r.PathValue("duration"), advanceMax)
	}
	return answer, c.advance(r.Context(), d)
}

func (s *Server) switchNode(r *http.Request) (answer Answer, err error) {
	c, err := s.named(r)
	if err != nil {
		return answer, err
	}
	switch state := r.PathValue("state"); state {
	case "on", "off":
		return answer, c.switchNode(r.Context(), r.PathValue("node"), state == "on")
	default:
		return answer, badRequest("a node can be switched on or off, not %q", state)
	}
}

// why says what holds an object, as `setpoint why` does.
func (s *Server) why(r *http.Request) (answer Answer, err error) {
	c, err := s.named(r)
	if err == nil {
		answer.Why, err = c.why(r.Context(), r.PathValue("kind"), r.PathValue("namespace"), r.PathValue("name"))
	}
	return answer, asked(err)
}

func (s *Server) remove(r *http.Request) (answer Answer, err error) {
	if _, err := s.named(r); err != nil {
		return answer, err
	}
	_, err = s.drop(func(id string, _ *cluster) bool { return id == r.PathValue("cluster") })
	return answer, err
}

// kubeconfig answers with the file itself.
func (s *Server) kubeconfig(w http.ResponseWriter, r *http.Request) {
	defer s.enter()()
	var text []byte
	err := clean(r)
	var c *cluster
	if err == nil {
		c, err = s.named(r)
	}
	if err == nil {
		text, err = c.open(r.Context())
	}
	if err != nil {
		say(w, Answer{}, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(text) // who asked has gone if it fails
}

// session stays open as long as the client does. What it made ends with it.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	defer s.enter()()
	if err := clean(r); err != nil {
		say(w, Answer{}, err)
		return
	}
	id, err := s.openSession()
	if err != nil {
		say(w, Answer{}, err)
		return
	}
	say(w, Answer{Session: id}, nil)
	if err := http.NewResponseController(w).Flush(); err == nil {
		<-r.Context().Done()
	}
	s.mu.Lock()
	delete(s.sessions, id)
	s.mu.Unlock()
	_, _ = s.drop(func(_ string, c *cluster) bool { return c.session == id }) // nobody is left to be told
}

// openSession begins a session, unless the server ends: while one is open it does not.
func (s *Server) openSession() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return "", errEnded
	}
	id := s.name("session-")
	s.sessions[id] = true
	return id, nil
}
