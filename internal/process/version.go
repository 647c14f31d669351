package process

// Version is Setpoint's own version. The Kubernetes version that it serves stands in
// apiserver/discovery.
const Version = "0.1.0"
