package embedded

import "testing"

// BenchmarkPodStart measures a sandbox and a started container, with an image that is here; removal is not counted.
// "own" re-executes this executable as shim and init, "small" uses the helper of its own.
func BenchmarkPodStart(b *testing.B) {
	for name, prepare := range map[string]func(*testing.B, *Config){
		"own": func(*testing.B, *Config) {},
		"small": func(b *testing.B, config *Config) {
			config.ShimExecutable = buildShim(b)
		},
	} {
		b.Run(name, func(b *testing.B) {
			config := testConfig(b)
			prepare(b, &config)
			r := open(b, config)
			b.Cleanup(func() { removeAll(b, r) })
			for b.Loop() {
				p := runPod(b, r, nil)
				p.start(containerConfig("sleep"))
				b.StopTimer()
				if err := r.RemovePodSandbox(b.Context(), p.id); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
