package main

import (
	"encoding/json"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// asked is how a dry run is asked for.
	asked = "?dryRun=All&fieldManager=manifests&fieldValidation=Warn"
	// together is how many objects are sent at once.
	together = 4
	// settled is how long is waited until a definition is established, or gone; discovered, until discovery has it. Nothing tells when
	// upstream is ready for its objects: asked too early it says that its storage is (re)initializing, and then takes minutes to delete
	// the definition.
	settled    = 2 * time.Minute
	pause      = 100 * time.Millisecond
	discovered = 2 * time.Second
)

// play sends the objects of a project to both sides, its definitions first, and takes these away again.
func play(sides []*side, all []document, report *report) {
	made := define(sides, all, report)
	defer undefine(sides, made)
	makeNamespaces(sides, all)
	kinds := []served{sides[0].kinds(), sides[1].kinds()}
	var group errgroup.Group
	group.SetLimit(together)
	for _, d := range all {
		gvk := d.object.GroupVersionKind()
		if gvk.Kind == "CustomResourceDefinition" {
			continue
		}
		if kinds[0][gvk] != kinds[1][gvk] {
			report.note(gvk.String()+": served by one side only", d.file)
		}
		if kinds[0][gvk].plural == "" || kinds[1][gvk].plural == "" {
			report.count("unknown kinds")
			continue
		}
		group.Go(func() error {
			report.compare(gvk.GroupKind().String(), d.file, both(sides, http.MethodPost, kinds[0].path(gvk, namespaceOf(d))+asked, d.text))
			return nil
		})
	}
	_ = group.Wait() // nothing fails: what goes wrong is an answer
}

func namespaceOf(d document) string {
	if namespace := d.object.GetNamespace(); namespace != "" {
		return namespace
	}
	return "default"
}

// both asks one side after the other.
func both(sides []*side, method, path string, body []byte) (answers [2]answer) {
	for i, s := range sides {
		answers[i] = s.do(method, path, body)
	}
	return answers
}

// define creates what both sides take, and compares what they make of it.
func define(sides []*side, all []document, report *report) (made []document) {
	for _, d := range all {
		if d.object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		answers := both(sides, http.MethodPost, definitions+asked, d.text)
		report.compare("definition", d.file, answers)
		if !created(answers) {
			continue
		}
		if answers = both(sides, http.MethodPost, definitions+"?fieldManager=manifests", d.text); created(answers) {
			made = append(made, d)
		} else {
			report.compare("definition that is not stored", d.file, answers)
		}
	}
	for _, d := range made {
		name := d.object.GetName()
		await(sides, name, established)
		report.compare("definition that is stored", name, withoutTimes(both(sides, http.MethodGet, definitions+"/"+name, nil)))
	}
	if len(made) > 0 {
		time.Sleep(discovered)
	}
	return made
}

func created(answers [2]answer) bool {
	return answers[0].code == http.StatusCreated && answers[1].code == http.StatusCreated
}

func undefine(sides []*side, made []document) {
	for _, d := range made {
		both(sides, http.MethodDelete, definitions+"/"+d.object.GetName(), nil)
	}
	for _, d := range made {
		await(sides, d.object.GetName(), func(a answer) bool { return a.code == http.StatusNotFound })
	}
}

// await waits until a definition is so on both sides; what then is not is a difference.
func await(sides []*side, name string, is func(answer) bool) {
	for _, s := range sides {
		for begin := time.Now(); time.Since(begin) < settled && !is(s.do(http.MethodGet, definitions+"/"+name, nil)); {
			time.Sleep(pause)
		}
	}
}

func established(a answer) bool {
	conditions, _, _ := unstructured.NestedSlice(a.object, "status", "conditions")
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

func makeNamespaces(sides []*side, all []document) {
	made := map[string]bool{"default": true, "": true}
	for _, d := range all {
		if namespace := d.object.GetNamespace(); !made[namespace] {
			made[namespace] = true
			text, _ := json.Marshal(map[string]any{"metadata": map[string]any{"name": namespace}})
			both(sides, http.MethodPost, "/api/v1/namespaces", text)
		}
	}
}
