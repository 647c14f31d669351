package apiserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/parts"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// dyingServer serves the logs of parts, and dies in the middle. Others are no members.
type dyingServer struct{ base string }

func (d dyingServer) Server(pod *corev1.Pod) (*url.URL, http.RoundTripper, bool, error) {
	server, _, ok := parts.Of(pod)
	if ok && server != "s1" {
		return nil, nil, true, errors.New("it is no member")
	}
	base, err := url.Parse(d.base + "/below")
	return base, http.DefaultTransport, ok, err
}

// TestPartsOfServersHaveLogsOnly: the log comes from the part's server and ends without an error when that dies; all else is refused.
func TestPartsOfServersHaveLogsOnly(t *testing.T) {
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, r.URL.RequestURI())
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer dying.Close()
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Servers = dyingServer{dying.URL}
	_, client := startServer(t, config)
	pods := client.CoreV1().Pods(parts.Namespace)
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: parts.Namespace}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for _, server := range []string{"s1", "s2"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: parts.PodName(parts.Scheduler, server), Annotations: map[string]string{
				corev1.MirrorPodAnnotationKey: "x", parts.SourceAnnotation: parts.Source,
			}},
			Spec: corev1.PodSpec{NodeName: parts.NodeName(server), Containers: []corev1.Container{{Name: parts.Scheduler, Image: "i"}}},
		}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := pods.GetLogs("kube-scheduler-s1", &corev1.PodLogOptions{TailLines: new(int64(3))}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	const want = "/below/containerLogs/kube-system/kube-scheduler-s1/kube-scheduler?tailLines=3\nthe log ends here: its server does not answer any more: "
	if err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := pods.GetLogs("kube-scheduler-s2", &corev1.PodLogOptions{}).DoRaw(t.Context()); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("of no member: %v", err)
	}
	for _, subresource := range []string{"exec", "attach", "portforward"} {
		err := client.CoreV1().RESTClient().Post().Namespace(parts.Namespace).Resource("pods").Name("kube-scheduler-s1").SubResource(subresource).
			Param("command", "ls").Do(t.Context()).Error()
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "only its log can be read; metrics are at /metrics of the server") {
			t.Errorf("%s: %v", subresource, err)
		}
	}
}
