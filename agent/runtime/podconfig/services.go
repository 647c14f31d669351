package podconfig

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// masterService is in every pod's environment, whatever its namespace.
const masterService = "kubernetes"

// serviceEnv is the docker-link style environment of the services a pod sees.
func serviceEnv(ctx context.Context, in EnvInput) (map[string]string, error) {
	out := map[string]string{}
	defaults, err := in.Objects.Services(ctx, metav1.NamespaceDefault)
	if err != nil {
		return nil, err
	}
	for _, s := range defaults {
		if s.Name == masterService {
			addService(out, s)
		}
	}
	if links := in.Pod.Spec.EnableServiceLinks; links != nil && !*links {
		return out, nil
	}
	own, err := in.Objects.Services(ctx, in.Pod.Namespace)
	if err != nil {
		return nil, err
	}
	for _, s := range own {
		addService(out, s)
	}
	return out, nil
}

func addService(out map[string]string, s *corev1.Service) {
	ip := s.Spec.ClusterIP
	if ip == "" || ip == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 {
		return
	}
	prefix := strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
	first := strconv.Itoa(int(s.Spec.Ports[0].Port))
	out[prefix+"_SERVICE_HOST"] = ip
	out[prefix+"_SERVICE_PORT"] = first
	for i, p := range s.Spec.Ports {
		port := strconv.Itoa(int(p.Port))
		if p.Name != "" {
			out[prefix+"_SERVICE_PORT_"+strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_"))] = port
		}
		proto := "TCP"
		if p.Protocol != "" {
			proto = string(p.Protocol)
		}
		url := fmt.Sprintf("%s://%s", strings.ToLower(proto), net.JoinHostPort(ip, port))
		if i == 0 {
			out[prefix+"_PORT"] = url
		}
		link := fmt.Sprintf("%s_PORT_%s_%s", prefix, port, proto)
		out[link], out[link+"_PROTO"], out[link+"_PORT"], out[link+"_ADDR"] = url, strings.ToLower(proto), port, ip
	}
}
