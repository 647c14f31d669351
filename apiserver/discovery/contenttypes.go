package discovery

import "k8s.io/apimachinery/pkg/types"

// Content types of bodies and answers. kubectl believes them: it applies changes by a
// strategic merge where that is said to be understood.

func objectTypes(op operation) []string {
	if op.custom {
		return []string{"application/json", "application/yaml"}
	}
	return []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
}

func streamTypes(op operation) []string {
	if op.custom {
		return []string{"application/json;stream=watch"}
	}
	return []string{"application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"}
}

func patchTypes(op operation) []string {
	all := []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
	if !op.custom {
		all = append(all, string(types.StrategicMergePatchType))
	}
	return all
}
