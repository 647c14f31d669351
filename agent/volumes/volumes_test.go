package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// shelf holds the objects volumes are made from.
type shelf struct {
	maps    map[string]map[string]string
	secrets map[string]map[string]string
	tokens  int
	bundles map[string]*certificatesv1.ClusterTrustBundle
	signer  signer
	claims  []string // that were looked up
	volumes map[string]corev1.PersistentVolumeSource
}

func (s *shelf) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	if data, ok := s.maps[name]; ok {
		return &corev1.ConfigMap{Data: data}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
}

func (s *shelf) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	data, ok := s.secrets[name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	out := &corev1.Secret{Data: map[string][]byte{}}
	for k, v := range data {
		out.Data[k] = []byte(v)
	}
	return out, nil
}

func (s *shelf) Token(context.Context, *corev1.Pod, string, int64) (string, time.Time, error) {
	s.tokens++
	return "token", time.Now().Add(time.Hour), nil
}

func (s *shelf) Volume(_ context.Context, _, claim string, owner *corev1.Pod) (*corev1.PersistentVolume, error) {
	s.claims = append(s.claims, fmt.Sprint(claim, " owned: ", owner != nil))
	if source, ok := s.volumes[claim]; ok {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}, nil
	}
	return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/srv"}}}}, nil
}

func newManager(t *testing.T, s *shelf) *Manager {
	t.Helper()
	return New(Config{Objects: s, Dirs: podconfig.Dirs{Root: t.TempDir()}, WithoutMounts: true})
}

func podWith(sources ...corev1.VolumeSource) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Labels: map[string]string{"app": "web"}}}
	var mounts []corev1.VolumeMount
	for i, s := range sources {
		name := string(rune('a' + i))
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: s})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	p.Spec.Containers = []corev1.Container{{Name: "c", VolumeMounts: mounts}}
	return p
}

func configMap(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: items}}
}

func mount(t *testing.T, m *Manager, p *corev1.Pod) Places {
	t.Helper()
	places, err := m.Mount(t.Context(), Input{Pod: p})
	if err != nil {
		t.Fatal(err)
	}
	return places
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// visible lists the names a user of the volume sees.
func visible(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestConfigMapUpdatesAtOnce(t *testing.T) {
	s := &shelf{maps: map[string]map[string]string{"cm": {"a": "1", "b": "1", "gone": "1"}}}
	m, p := newManager(t, s), podWith(configMap("cm"))
	dir := mount(t, m, p)["a"].Path
	if read(t, dir+"/a") != "1" {
		t.Error("first content")
	}
	before, err := os.Readlink(dir + "/..data")
	if err != nil {
		t.Fatal(err)
	}
	mount(t, m, p)
	if same, _ := os.Readlink(dir + "/..data"); same != before {
		t.Error("equal content was written again")
	}
	held, err := os.Open(dir + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	s.maps["cm"] = map[string]string{"a": "2", "b": "2", "new": "2"}
	mount(t, m, p)
	if got := visible(t, dir); !slices.Equal(got, []string{"a", "b", "new"}) {
		t.Errorf("visible = %v", got)
	}
	if read(t, dir+"/a")+read(t, dir+"/b")+read(t, dir+"/new") != "222" {
		t.Error("content after the update")
	}
	buf := make([]byte, 1)
	if _, err := held.ReadAt(buf, 0); err != nil || string(buf) != "1" {
		t.Errorf("an open file must keep its content: %q %v", buf, err)
	}
	if _, err := os.Stat(filepath.Join(dir, before)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the old content was left behind")
	}
}

func TestModesAndPaths(t *testing.T) {
	s := &shelf{maps: map[string]map[string]string{"cm": {"k": "v"}}}
	mode := int32(0o400)
	m, p := newManager(t, s), podWith(configMap("cm", corev1.KeyToPath{Key: "k", Path: "deep/er/file", Mode: &mode}))
	dir := mount(t, m, p)["a"].Path
	info, err := os.Stat(dir + "/deep/er/file")
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("mode %v, %v", info, err)
	}
}

func TestPathsCannotLeaveTheVolume(t *testing.T) {
	s := &shelf{maps: map[string]map[string]string{"cm": {"k": "v"}}}
	for _, path := range []string{"../out", "a/../../out", "/abs", "..data", ""} {
		m, p := newManager(t, s), podWith(configMap("cm", corev1.KeyToPath{Key: "k", Path: path}))
		if _, err := m.Mount(t.Context(), Input{Pod: p}); err == nil {
			t.Errorf("path %q was accepted", path)
		}
	}
}

func TestMissingObjects(t *testing.T) {
	yes := true
	s := &shelf{maps: map[string]map[string]string{"cm": {"k": "v"}}}
	m := newManager(t, s)
	_, err := m.Mount(t.Context(), Input{Pod: podWith(configMap("nope"))})
	if want := `MountVolume.SetUp failed for volume "a" : configmap "nope" not found`; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
	if _, err := m.Mount(t.Context(), Input{Pod: podWith(configMap("cm", corev1.KeyToPath{Key: "x", Path: "x"}))}); err == nil {
		t.Error("a missing key was accepted")
	}
	optional := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "nope", Optional: &yes}}
	if got := visible(t, mount(t, m, podWith(optional))["a"].Path); len(got) != 0 {
		t.Errorf("optional and missing: %v", got)
	}
	if _, err := m.Mount(t.Context(), Input{Pod: podWith(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}})}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("err = %v", err)
	}
}

// TestOnlyVolumesThatContainersHaveAreMounted: what nobody has need not be there either.
func TestOnlyVolumesThatContainersHaveAreMounted(t *testing.T) {
	file := corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "a"}}}
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		want   bool
	}{
		"nobody":               {func(s *corev1.PodSpec) { s.Containers[0].VolumeMounts = nil }, false},
		"a container":          {func(*corev1.PodSpec) {}, true},
		"an init container":    {func(s *corev1.PodSpec) { s.InitContainers, s.Containers = s.Containers, nil }, true},
		"a variable of a file": {func(s *corev1.PodSpec) { s.Containers = []corev1.Container{{Env: []corev1.EnvVar{file}}} }, true},
		"one that takes devices": {func(s *corev1.PodSpec) {
			s.Containers = []corev1.Container{{VolumeDevices: []corev1.VolumeDevice{{Name: "a"}}}}
		}, true},
		"an ephemeral container": {func(s *corev1.PodSpec) {
			s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(s.Containers[0])}}
			s.Containers = nil
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := podWith(configMap("nope"))
			c.change(&p.Spec)
			places, err := newManager(t, &shelf{}).Mount(t.Context(), Input{Pod: p})
			if tried := err != nil; tried != c.want || len(places) != 0 {
				t.Errorf("paths %v, err %v", places, err)
			}
		})
	}
}

// TestClaims: a generic ephemeral volume is a claim of the pod's own, named after both.
func TestClaims(t *testing.T) {
	s := &shelf{}
	p := podWith(
		corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"}},
		corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}},
	)
	if got := mount(t, newManager(t, s), p); got["a"].Path != "/srv" || got["b"].Path != "/srv" {
		t.Error(got)
	}
	if want := []string{"shared owned: false", "p-b owned: true"}; !slices.Equal(s.claims, want) {
		t.Errorf("claims %q, want %q", s.claims, want)
	}
}

// TestImageVolumes are left to the runtime, sub-path and all.
func TestImageVolumes(t *testing.T) {
	m, p := newManager(t, &shelf{}), podWith(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "r"}})
	c := &corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/v", SubPathExpr: "x/$(POD)"}}}
	mounts, err := m.Mounts(MountInput{
		Pod: p, Container: c, Places: mount(t, m, p), Env: map[string]string{"POD": "web-0"},
		Images: map[string]*runtimeapi.Image{"a": {Id: "sha256:1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := mounts[0]; got.Image.GetImage() != "sha256:1" || got.ImageSubPath != "x/web-0" || got.HostPath != "" || !got.Readonly {
		t.Errorf("%+v", got)
	}
}

func TestProjection(t *testing.T) {
	s := &shelf{maps: map[string]map[string]string{"cm": {"k": "v"}}, secrets: map[string]map[string]string{"s": {"pw": "x"}}}
	p := podWith(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
	}}})
	m := newManager(t, s)
	dir := mount(t, m, p)["a"].Path
	if got := visible(t, dir); !slices.Equal(got, []string{"k", "labels", "pw", "token"}) {
		t.Errorf("visible = %v", got)
	}
	if read(t, dir+"/labels") != `app="web"` || read(t, dir+"/token") != "token" {
		t.Errorf("labels %q", read(t, dir+"/labels"))
	}
	mount(t, m, p)
	if s.tokens != 1 {
		t.Errorf("%d tokens issued, want one until it ages", s.tokens)
	}
}

// ageing are tokens that are good for an hour, each another one.
type ageing struct{ shelf }

func (a *ageing) Token(context.Context, *corev1.Pod, string, int64) (string, time.Time, error) {
	a.tokens++
	return fmt.Sprint("token ", a.tokens), time.Now().Add(time.Hour), nil
}

// TestTokensAreRenewed before they end: with a fifth of their life left.
func TestTokensAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{Objects: &ageing{}, Dirs: podconfig.Dirs{Root: t.TempDir()}, WithoutMounts: true})
		p := podWith(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}})
		if !m.Refreshes(p) {
			t.Fatal("nobody would come back to it")
		}
		dir := mount(t, m, p)["a"].Path
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{0, "token 1"}, {47 * time.Minute, "token 1"}, {RefreshEvery + time.Minute, "token 2"}, {47 * time.Minute, "token 2"}, {time.Hour, "token 3"}} {
			time.Sleep(c.after)
			mount(t, m, p)
			if got := read(t, dir+"/token"); got != c.want {
				t.Errorf("after %v: %q, want %q", c.after, got, c.want)
			}
		}
	})
}

func TestEmptyDirAndUnmount(t *testing.T) {
	m, p := newManager(t, &shelf{}), podWith(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	dir := mount(t, m, p)["a"].Path
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.WriteFile(dir+"/kept", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if mount(t, m, p); !slices.Equal(visible(t, dir), []string{"kept"}) {
		t.Error("mounting again must not empty it")
	}
	if err := m.Unmount(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(m.Dirs.Pod(p)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the pod's directory was left behind")
	}
}

func TestHostPathTypes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		kind corev1.HostPathType
		ok   bool
	}{
		{dir, corev1.HostPathDirectory, true}, {file, corev1.HostPathDirectory, false}, {file, corev1.HostPathFile, true},
		{dir + "/x", corev1.HostPathFile, false}, {dir + "/new", corev1.HostPathDirectoryOrCreate, true}, {dir + "/made", corev1.HostPathFileOrCreate, true},
		{"/dev/null", corev1.HostPathCharDev, true}, {file, corev1.HostPathSocket, false}, {dir + "/any", corev1.HostPathUnset, true},
	} {
		if err := checkHostPath(&corev1.HostPathVolumeSource{Path: tc.path, Type: &tc.kind}); (err == nil) != tc.ok {
			t.Errorf("%s as %q: %v", tc.path, tc.kind, err)
		}
	}
}

func TestSubPathsStayInside(t *testing.T) {
	m, volume := newManager(t, &shelf{}), t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(volume, "evil")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(volume, "inside")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(volume, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(volume, "pipe"), 0o644); err != nil { // opening it would never end
		t.Fatal(err)
	}
	for sub, ok := range map[string]bool{
		"evil": false, "evil/passwd": false, "../x": false, "/etc": false, "inside": true, "made/deep": true, "pipe": true,
	} {
		c := &corev1.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/m", SubPath: sub}}}
		mounts, err := m.Mounts(MountInput{Pod: podWith(), Container: c, Places: Places{"a": {Path: volume}}})
		if (err == nil) != ok {
			t.Errorf("%q: %v", sub, err)
		}
		if err == nil && !strings.HasPrefix(mounts[0].HostPath, volume) {
			t.Errorf("%q leads to %s", sub, mounts[0].HostPath)
		}
	}
}

func TestNewSubPathsHaveTheModeOfTheirVolume(t *testing.T) {
	m, volume := newManager(t, &shelf{}), t.TempDir()
	if err := os.Chmod(volume, 0o777|os.ModeSetgid|os.ModeSticky); err != nil { // an emptyDir in memory with an fsGroup
		t.Fatal(err)
	}
	c := &corev1.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/m", SubPath: "made/deep"}}}
	if _, err := m.Mounts(MountInput{Pod: podWith(), Container: c, Places: Places{"a": {Path: volume}}}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"made", "made/deep"} {
		if info, err := os.Stat(filepath.Join(volume, dir)); err != nil || info.Mode() != os.ModeDir|os.ModeSetgid|os.ModeSticky|0o777 {
			t.Errorf("%s has mode %v %v: the container's user cannot write there", dir, info.Mode(), err)
		}
	}
}

func TestSubPathExpr(t *testing.T) {
	m, volume := newManager(t, &shelf{}), t.TempDir()
	c := &corev1.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/m", SubPathExpr: "logs/$(POD)", ReadOnly: true}}}
	mounts, err := m.Mounts(MountInput{
		Pod: podWith(), Container: c, Places: Places{"a": {Path: volume}}, Env: map[string]string{"POD": "web-0"},
	})
	if err != nil || mounts[0].HostPath != filepath.Join(volume, "logs/web-0") || !mounts[0].Readonly {
		t.Errorf("%v %v", mounts, err)
	}
}

func TestMediaThatCannotBe(t *testing.T) {
	for medium, want := range map[corev1.StorageMedium]string{
		"Tape":          `unknown storage medium "Tape"`,
		"HugePages-2Mi": "medium HugePages-2Mi: hugePages storage requested, but there is no resource request for huge pages",
	} {
		p := podWith(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}})
		want = `MountVolume.SetUp failed for volume "a" : ` + want
		if _, err := newManager(t, &shelf{}).Mount(t.Context(), Input{Pod: p}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", medium, err)
		}
	}
}

// TestRealMounts pins a sub-path and mounts tmpfs and huge pages; it is why the project's tests run as root.
func TestRealMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	s := &shelf{secrets: map[string]map[string]string{"s": {"pw": "x"}}}
	m := newManager(t, s)
	m.WithoutMounts = false
	limit, mode := resource.MustParse("9Mi"), int32(0o750)
	p := podWith(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}},
		corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
		corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages, SizeLimit: &limit, Mode: &mode}})
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"hugepages-2Mi": limit}
	defer func() {
		if err := m.Unmount(t.Context(), p); err != nil {
			t.Error(err)
		}
		if left, _ := mountsBelow(m.Dirs.Root); len(left) != 0 {
			t.Errorf("mounts left: %v", left)
		}
	}()
	places := mount(t, m, p)
	if !isMountPoint(places["a"].Path) || !isMountPoint(places["b"].Path) {
		t.Error("memory volumes and secrets belong on tmpfs")
	}
	var huge unix.Statfs_t
	if err := unix.Statfs(places["c"].Path, &huge); err != nil || huge.Type != unix.HUGETLBFS_MAGIC || huge.Bsize != 2<<20 || huge.Blocks != 4 {
		t.Errorf("four huge pages: %+v, %v", huge, err)
	}
	if info, err := os.Stat(places["c"].Path); err != nil || info.Mode().Perm() != 0o750 {
		t.Error(info.Mode(), err)
	}
	c := &corev1.Container{Name: "c", VolumeMounts: []corev1.VolumeMount{{Name: "b", MountPath: "/pw", SubPath: "pw"}, {Name: "a", MountPath: "/d", SubPath: "dir"}}}
	mounts, err := m.Mounts(MountInput{Pod: p, Container: c, Places: places})
	if err != nil {
		t.Fatal(err)
	}
	if read(t, mounts[0].HostPath) != "x" {
		t.Error("the pinned file has other content")
	}
	if err := os.Remove(places["a"].Path + "/dir"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", places["a"].Path+"/dir"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mounts[1].HostPath + "/passwd"); err == nil {
		t.Error("the pinned sub-path followed a link planted later")
	}
}

// TestKeysAreForTheirUser: a key in a volume belongs to the user of the containers, and nobody else reads it.
func TestKeysAreForTheirUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("changing owners needs root")
	}
	m, p := certified(t, &shelf{}, "ED25519")
	user := int64(1234)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user}
	dir := mount(t, m, p)["a"].Path
	info, err := os.Stat(dir + "/key.pem")
	if err != nil || info.Mode().Perm() != 0o600 || ownerOf(info) != 1234 {
		t.Errorf("mode %v owner %d: %v", info.Mode(), ownerOf(info), err)
	}
}

func ownerOf(info os.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }

// TestTmpfsOptions: a volume in memory has the machine's options beside its own.
func TestTmpfsOptions(t *testing.T) {
	for want, of := range map[string][]string{"mode=0755": nil, "mode=0755,noswap": {"noswap"}} {
		if got := New(Config{TmpfsOptions: of}).tmpfsOptions("mode=0755"); got != want {
			t.Errorf("%v: %q", of, got)
		}
	}
}

// TestVolumesInMemoryAreSticky: so a kubelet leaves them, since the kernel mounts a tmpfs so.
func TestVolumesInMemoryAreSticky(t *testing.T) {
	for medium, want := range map[corev1.StorageMedium]os.FileMode{"": 0o777, corev1.StorageMediumMemory: 0o777 | os.ModeSticky} {
		m := newManager(t, &shelf{})
		source := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}
		dir := mount(t, m, podWith(source))["a"].Path
		if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|want {
			t.Errorf("medium %q: %v, %v", medium, info.Mode(), err)
		}
	}
}
