package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/admission"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// portWorld is a cluster in which Services of two tenants ask for few node ports, and servers and agents come and go that have some of
// them for themselves. A restart is another server on the same store.
type portWorld struct {
	t      *testing.T
	random *rand.Rand
	log    storage.Log
	server *Server
	book   *reserved.Book
	made   int
	// services are as the API has shown them last, by namespace/name.
	services map[string]*corev1.Service
	refusals map[string]int
}

const (
	// scarceFirst and scarcePorts are the node ports that Services ask for.
	scarceFirst, scarcePorts = 30000, 6
	portTaken                = "provided port is already allocated"
)

var protocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}

// start is a server that knows of no machines yet, as after a restart.
func (w *portWorld) start() {
	config := serverConfig(w.t, w.log)
	config.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	w.book = reserved.New()
	config.Reserved = w.book
	var err error
	config.Admission, err = admission.New(admission.Config{Store: config.Storage, Authorizer: config.Authorizer, Reserved: w.book})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.server, err = New(config); err != nil {
		w.t.Fatal(err)
	}
}

func (w *portWorld) scarce() int32 { return scarceFirst + w.random.Int32N(scarcePorts) }

// change is one thing that somebody does.
func (w *portWorld) change() {
	key := w.any()
	switch w.random.IntN(10) {
	case 0, 1, 2:
		w.create()
	case 3, 4:
		w.delete(key)
	case 5, 6:
		w.update(key, func(s *corev1.Service) { w.askFor(s) })
	case 7:
		w.update(key, func(s *corev1.Service) { s.Labels = map[string]string{"turn": fmt.Sprint(w.random.IntN(100))} })
	case 8:
		w.reserve()
	case 9:
		if w.random.IntN(4) == 0 {
			w.start()
		}
	}
}

// any is one of the Services, "" if there is none.
func (w *portWorld) any() string {
	if len(w.services) == 0 {
		return ""
	}
	n := w.random.IntN(len(w.services))
	for i := range w.made + 1 { // in the order in which they were made, so that a seed is one world
		for _, namespace := range []string{"a", "b"} {
			key := fmt.Sprintf("%s/s%d", namespace, i)
			if w.services[key] == nil {
				continue
			}
			if n == 0 {
				return key
			}
			n--
		}
	}
	return ""
}

// reserve has a server or an agent come that has a port for itself, or go.
func (w *portWorld) reserve() {
	switch port := w.scarce(); w.random.IntN(4) {
	case 0:
		w.book.SetServers([]reserved.Machine{{Name: "server s", Ports: map[reserved.Port]reserved.Use{reserved.TCP(port): reserved.API}}})
	case 1:
		w.book.SetServers(nil)
	case 2:
		w.book.SetNode("n", &reserved.Machine{Name: "node n", Ports: map[reserved.Port]reserved.Use{
			reserved.TCP(port): reserved.Gossip, reserved.UDP(port): reserved.Gossip,
		}})
	case 3:
		w.book.SetNode("n", nil)
	}
}

// askFor gives a Service other ports: of one or two protocols, with a number of its own or none, and perhaps a health port.
func (w *portWorld) askFor(s *corev1.Service) {
	s.Spec.Type, s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceTypeNodePort, "", 0
	s.Spec.Ports = nil
	for i := range 1 + w.random.IntN(2) {
		port := corev1.ServicePort{Name: fmt.Sprint("p", i), Port: 53 + w.random.Int32N(2), Protocol: protocols[w.random.IntN(3)]}
		if w.random.IntN(4) > 0 {
			port.NodePort = w.scarce()
		}
		if i == 0 || port.Protocol != s.Spec.Ports[0].Protocol { // else its own rules refuse it
			s.Spec.Ports = append(s.Spec.Ports, port)
		}
	}
	if w.random.IntN(3) == 0 {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
		if w.random.IntN(3) > 0 {
			s.Spec.HealthCheckNodePort = w.scarce()
		}
	}
}

func (w *portWorld) create() {
	w.made++
	s := &corev1.Service{}
	s.Name, s.Namespace = fmt.Sprint("s", w.made), []string{"a", "b"}[w.random.IntN(2)]
	w.askFor(s)
	w.write(http.MethodPost, "/api/v1/namespaces/"+s.Namespace+"/services", s, nil)
}

func (w *portWorld) update(key string, change func(*corev1.Service)) {
	was := w.services[key]
	if was == nil {
		return
	}
	s := was.DeepCopy()
	s.ResourceVersion = ""
	change(s)
	if was.Spec.HealthCheckNodePort != 0 && s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		s.Spec.HealthCheckNodePort = was.Spec.HealthCheckNodePort // it never changes
	}
	w.write(http.MethodPut, "/api/v1/namespaces/"+s.Namespace+"/services/"+s.Name, s, was)
}

func (w *portWorld) delete(key string) {
	if s := w.services[key]; s != nil {
		mustDo[corev1.Service](w.t, w.server, call{method: http.MethodDelete, path: "/api/v1/namespaces/" + s.Namespace + "/services/" + s.Name})
		delete(w.services, key)
	}
}

// write asks for a Service, and judges the answer: it is refused if and only if somebody else has a port that it names.
func (w *portWorld) write(method, path string, s, was *corev1.Service) {
	body, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	got := call{method: method, path: path, body: string(body), as: &user.DefaultInfo{Name: "user-" + s.Namespace}}.do(w.t, w.server)
	want := w.refusal(s, was)
	if (got.code >= http.StatusMultipleChoices) != (want != "") || want != "" && (got.code != http.StatusUnprocessableEntity || !strings.Contains(got.status.Message, want)) {
		w.t.Errorf("%s %s: %d %s, want %q\n%s", method, path, got.code, got.status.Message, want, body)
	}
	w.refusals[want]++
	if got.code >= http.StatusMultipleChoices {
		return
	}
	made := &corev1.Service{}
	if err := json.Unmarshal([]byte(got.body), made); err != nil {
		w.t.Fatal(err)
	}
	w.judgeDrawn(s, made, was)
	w.services[s.Namespace+"/"+s.Name] = made
}

// claimed are the node ports of a Service, with their protocols; that of health is TCP. nil has none.
func claimed(s *corev1.Service) map[reserved.Port]bool {
	all := map[reserved.Port]bool{}
	if s == nil {
		return all
	}
	for _, p := range s.Spec.Ports {
		all[reserved.Port{Protocol: p.Protocol, Number: p.NodePort}] = p.NodePort != 0
	}
	all[reserved.TCP(s.Spec.HealthCheckNodePort)] = s.Spec.HealthCheckNodePort != 0 || all[reserved.TCP(s.Spec.HealthCheckNodePort)]
	return all
}

// refusal is what a Service is told that names these ports; "": it gets them. Whoever has a number has it for all protocols.
func (w *portWorld) refusal(s, was *corev1.Service) string {
	s, had := kept(s, was), claimed(was)
	for port, asked := range claimed(s) {
		if _, held := w.book.Anywhere(port); asked && held && !had[port] {
			return " is for "
		}
	}
	for port, asked := range claimed(s) {
		for key, other := range w.services {
			if asked && key != s.Namespace+"/"+s.Name && numbers(other)[port.Number] {
				return portTaken
			}
		}
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 && p.NodePort == s.Spec.HealthCheckNodePort {
			return portTaken
		}
	}
	return ""
}

// kept is the Service with the node ports that it keeps without naming them: those of the same port and protocol.
func kept(s, was *corev1.Service) *corev1.Service {
	s = s.DeepCopy()
	if was == nil {
		return s
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		for _, old := range was.Spec.Ports {
			if p.NodePort == 0 && old.Protocol == p.Protocol && old.Port == p.Port && !claimed(s)[reserved.Port{Protocol: p.Protocol, Number: old.NodePort}] {
				p.NodePort = old.NodePort
			}
		}
	}
	return s
}

func numbers(s *corev1.Service) map[int32]bool {
	all := map[int32]bool{}
	for port, has := range claimed(s) {
		all[port.Number] = has || all[port.Number]
	}
	return all
}

// judgeDrawn looks at the ports that the Service did not name: they are nobody's, and no machine's.
func (w *portWorld) judgeDrawn(asked, made, was *corev1.Service) {
	named, had := claimed(asked), claimed(was)
	for port, has := range claimed(made) {
		if !has || named[port] || had[port] {
			continue
		}
		if h, held := w.book.Anywhere(port); held {
			w.t.Errorf("%s/%s was given %s", made.Namespace, made.Name, h)
		}
	}
}

// judge: whatever happened, no number belongs to two Services.
func (w *portWorld) judge() {
	holders := map[int32]string{}
	for key, s := range w.services {
		for number, has := range numbers(s) {
			if other := holders[number]; has && other != "" {
				w.t.Errorf("node port %d belongs to %s and %s", number, other, key)
			}
			if has {
				holders[number] = key
			}
		}
	}
}

// TestNodePortsInManyWorlds: Services of two tenants come, change and go, servers and agents that have node ports for themselves too, and
// the API's server starts anew. No number belongs to two Services, of whatever protocol; who has one keeps it, also when a machine takes
// it for itself; whoever names one that is another's or a machine's is told so, 422; all others get what they name, so what is given back
// is free for the next; and nobody is given one that a machine has.
func TestNodePortsInManyWorlds(t *testing.T) {
	refusals := map[string]int{}
	for seed := range uint64(60) {
		w := &portWorld{
			t: t, random: rand.New(rand.NewPCG(seed, 2)), log: raftstoretest.NewLocal(state.Options{}),
			services: map[string]*corev1.Service{}, refusals: refusals,
		}
		w.start()
		for _, namespace := range []string{"a", "b"} {
			mustDo[corev1.Namespace](t, w.server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"` + namespace + `"}}`})
		}
		for step := range 60 {
			w.change()
			if w.judge(); t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
	for _, kind := range []string{"", portTaken, " is for "} {
		if refusals[kind] < 50 {
			t.Errorf("the worlds are too quiet: %v", refusals)
		}
	}
}

// TestNoNodePortIsDrawnThatAMachineHas: of the range, all but a few are a server's, or host ports of pods, and a twin of another protocol
// takes none either. A node that says of all that pods have them keeps nobody from node ports.
func TestNoNodePortIsDrawnThatAMachineHas(t *testing.T) {
	w := &portWorld{t: t, log: raftstoretest.NewLocal(state.Options{}), services: map[string]*corev1.Service{}, refusals: map[string]int{}}
	w.start()
	mustDo[corev1.Namespace](t, w.server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"a"}}`})
	servers, pods, all := map[reserved.Port]reserved.Use{}, map[reserved.Port]reserved.Use{}, map[reserved.Port]reserved.Use{}
	for number := int32(30000); number <= 32767; number++ {
		switch all[reserved.TCP(number)] = reserved.Pod; {
		case number%20 == 0:
		case number%2 == 0:
			servers[reserved.TCP(number)] = reserved.API
		default:
			pods[reserved.TCP(number)] = reserved.Pod
		}
	}
	w.book.SetServers([]reserved.Machine{{Name: "server s", Ports: servers}})
	w.book.SetNode("n", &reserved.Machine{Name: "node n", Ports: pods})
	for i := range 21 {
		if i == 20 {
			w.book.SetNode("stolen", &reserved.Machine{Name: "node stolen", Ports: all})
		}
		s := &corev1.Service{}
		s.Namespace, s.Name, s.Spec.Type = "a", fmt.Sprint("s", i), corev1.ServiceTypeLoadBalancer
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.Ports = []corev1.ServicePort{
			{Name: "u", Port: 53, Protocol: corev1.ProtocolUDP, NodePort: 30002 + 20*int32(i)}, {Name: "t", Port: 53, Protocol: corev1.ProtocolTCP},
		}
		w.write(http.MethodPost, "/api/v1/namespaces/a/services", s, nil)
		health := w.services["a/"+s.Name].Spec.HealthCheckNodePort
		if i < 20 && pods[reserved.TCP(health)] != "" {
			t.Errorf("health check node port %d is a pod's", health)
		}
	}
	w.judge()
}
