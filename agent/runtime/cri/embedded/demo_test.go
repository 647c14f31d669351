package embedded

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// get asks the pod's server from the host; a fresh pod may need a moment to listen.
func get(t *testing.T, p *pod, path string) (code int, body string) {
	t.Helper()
	eventually(t, func() error {
		response, err := http.Get("http://" + p.ip() + ":8080" + path)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		code, body = response.StatusCode, string(text)
		return err
	})
	return code, body
}

func TestDemoImages(t *testing.T) {
	r := newRuntime(t)
	for version, health := range map[string]int{"v1": 200, "v2": 200, "broken": 503} {
		t.Run(version, func(t *testing.T) {
			p := runPod(t, r, func(config *runtimeapi.PodSandboxConfig) { config.Hostname = "shop-" + version })
			id := p.start(&runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: "demo"}, LogPath: "demo/0.log", Mounts: libraries(),
				Image: &runtimeapi.ImageSpec{Image: "setpoint.local/demo:" + version},
			})
			if code, body := get(t, p, "/"); code != 200 || body != fmt.Sprintf("shop-%s %s\n", version, version) {
				t.Errorf("/: %d %q", code, body)
			}
			if code, _ := get(t, p, "/healthz"); code != health {
				t.Errorf("/healthz: %d", code)
			}
			if code, _ := get(t, p, "/exit?code=4"); code != 200 {
				t.Errorf("/exit: %d", code)
			}
			if full := p.exit(id); full.ExitCode != 4 || !strings.Contains(p.log(id), "exit 4 on request") {
				t.Errorf("exit %d, log:\n%s", full.ExitCode, p.log(id))
			}
		})
	}
	images, err := r.ListImages(t.Context(), nil)
	if err != nil || len(images) != 3 {
		t.Errorf("images: %v %v", images, err)
	}
	info, err := r.ImageFsInfo(t.Context())
	if err != nil || info.ImageFilesystems[0].UsedBytes.Value == 0 {
		t.Errorf("file systems: %v %v", info, err)
	}
}
