// Package translations keeps kubectl's texts in other languages out of every start that does not need them: of commands that do not
// run kubectl, and of kubectl where people read English. Kubectl by itself loads a catalogue that translates English into the same
// English, for which it compresses and unpacks 350 kB: a quarter of the CPU time of a short command, which each exec probe of a demo
// pod would pay too.
//
// It owns k8s.io/kubectl's hook for that. cmd/setpoint imports it for its effect. The hook must be set before kubectl's packages
// are initialised, which ask for texts: the toolchain initialises packages whose imports are ready in the order of their paths, and
// this one imports nothing of kubectl but the hook. Tested by what the program has loaded when main begins, and by kubectl's English
// catalogue, which changes no text of its commands.
package translations
