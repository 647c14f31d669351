// Package images is the embedded runtime's image store: records of images and their layers, unpacked once each.
//
// It owns the images folder of the runtime's data directory. The embedded runtime calls it; it may call
// go-containerregistry, klauspost/compress and the standard library. Images come from three places: tar archives in a folder (loaded at
// start, and looked at again when a wanted image is missing), registries, and directories built on this machine.
// Images leave as archives, packed anew, and layers for other nodes, as they came (tars.go). Other nodes are asked for layers before
// a registry is (others.go), and told which ones are about to come (arrivals.go), in the terms of agent/runtime/images/peers.
//
// Images and registries may lie. What they may be is in limits.go, how long a registry may take in patience.go; what is beyond is an error
// of its pull, whose reason a pod's events tell, and costs neither the disk nor the agent's memory.
//
// It promises: content is checked against its digest before it counts; unpacking never leaves the layer's directory;
// a layer or record is visible only when complete (rename), so a crash leaves at worst a temporary directory that the
// next start deletes; a layer counts only once its content is on the disk (syncfs), so after a power cut none has parts of its files; a
// layer in use by a container is never removed. Methods are safe for concurrent use; equal
// pulls share one download. Tested with archives and a registry made in the tests.
package images
