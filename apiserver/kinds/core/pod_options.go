package core

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddPodOptions teaches the scheme to read the options of log, exec, attach and
// portforward, and of the proxies, from query parameters. The published types come without that.
func AddPodOptions(scheme *runtime.Scheme) error {
	convert := func(into any, read func(q *query, into any)) error {
		return scheme.AddConversionFunc((*url.Values)(nil), into, func(in, out any, _ conversion.Scope) error {
			q := &query{values: *in.(*url.Values)}
			read(q, out)
			return q.err
		})
	}
	for _, add := range []error{
		convert((*corev1.PodLogOptions)(nil), readLogOptions),
		convert((*corev1.PodExecOptions)(nil), readExecOptions),
		convert((*corev1.PodAttachOptions)(nil), readAttachOptions),
		convert((*corev1.PodPortForwardOptions)(nil), readPortForwardOptions),
		convert((*corev1.NodeProxyOptions)(nil), func(q *query, into any) { into.(*corev1.NodeProxyOptions).Path = q.text("path") }),
		convert((*corev1.PodProxyOptions)(nil), func(q *query, into any) { into.(*corev1.PodProxyOptions).Path = q.text("path") }),
		convert((*corev1.ServiceProxyOptions)(nil), func(q *query, into any) { into.(*corev1.ServiceProxyOptions).Path = q.text("path") }),
	} {
		if add != nil {
			return add
		}
	}
	return nil
}

func readLogOptions(q *query, into any) {
	o := into.(*corev1.PodLogOptions)
	o.Container = q.text("container")
	o.Follow = q.flag("follow")
	o.Previous = q.flag("previous")
	o.SinceSeconds = q.number("sinceSeconds")
	o.SinceTime = q.time("sinceTime")
	o.Timestamps = q.flag("timestamps")
	o.TailLines = q.number("tailLines")
	o.LimitBytes = q.number("limitBytes")
	o.InsecureSkipTLSVerifyBackend = q.flag("insecureSkipTLSVerifyBackend")
	if q.has("stream") {
		stream := q.text("stream")
		o.Stream = &stream
	}
}

func readExecOptions(q *query, into any) {
	o := into.(*corev1.PodExecOptions)
	o.Stdin, o.Stdout, o.Stderr, o.TTY = q.flag("stdin"), q.flag("stdout"), q.flag("stderr"), q.flag("tty")
	o.Container = q.text("container")
	o.Command = q.values["command"]
}

func readAttachOptions(q *query, into any) {
	o := into.(*corev1.PodAttachOptions)
	o.Stdin, o.Stdout, o.Stderr, o.TTY = q.flag("stdin"), q.flag("stdout"), q.flag("stderr"), q.flag("tty")
	o.Container = q.text("container")
}

func readPortForwardOptions(q *query, into any) {
	o := into.(*corev1.PodPortForwardOptions)
	for _, list := range q.values["ports"] {
		for _, text := range strings.Split(list, ",") {
			port, err := strconv.ParseInt(text, 10, 32)
			q.keep("ports", err)
			o.Ports = append(o.Ports, int32(port))
		}
	}
}

// query reads typed parameters and keeps the first error.
type query struct {
	values url.Values
	err    error
}

func (q *query) has(name string) bool    { return len(q.values[name]) > 0 }
func (q *query) text(name string) string { return q.values.Get(name) }

// flag follows the rule of Kubernetes for booleans in a query: present without a
// value means true, and only "false" and "0" mean false.
func (q *query) flag(name string) bool {
	if !q.has(name) {
		return false
	}
	text := strings.ToLower(q.text(name))
	return text != "false" && text != "0"
}

func (q *query) number(name string) *int64 {
	if !q.has(name) {
		return nil
	}
	n, err := strconv.ParseInt(q.text(name), 10, 64)
	q.keep(name, err)
	return &n
}

func (q *query) time(name string) *metav1.Time {
	if !q.has(name) {
		return nil
	}
	t := &metav1.Time{}
	q.keep(name, t.UnmarshalQueryParameter(q.text(name)))
	return t
}

func (q *query) keep(name string, err error) {
	if err != nil && q.err == nil {
		q.err = fmt.Errorf("query parameter %s: %w", name, err)
	}
}
