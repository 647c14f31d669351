package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// openModules opens an empty page beside the page's own modules, to call them without a cluster.
func openModules(t *testing.T) *page {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("../../web")))
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<!DOCTYPE html><main id="main"></main><p id="said"></p>`) // a browser that has left says so itself
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return openPage(t, server.URL+"/empty")
}

// runs is what a script returns. It has the page's modules imported after what it asks is answered by the script itself: lesson answers
// whether the cluster takes lessons, time is the browser's in milliseconds, and timers are what waits. until waits for a condition.
func (p *page) runs(script string) (said string) {
	p.t.Helper()
	p.do(chromedp.Evaluate(`(async () => {
		const state = { time: 0, timers: [], asked: 0, lesson: () => new Response('{}') };
		const later = window.setTimeout;
		const until = async (condition) => { while (!condition()) await new Promise((done) => later(done)); };
		performance.now = () => state.time;
		window.setTimeout = (act) => state.timers.push(act);
		const pods = { resource: 'pods', singularResource: 'pod', responseKind: { kind: 'Pod' }, scope: 'Namespaced' };
		const json = (value) => new Response(JSON.stringify(value));
		window.fetch = async (path) => {
			if (path.endsWith('/Lesson')) { state.asked++; return state.lesson(); }
			if (path.includes('what-if')) return json(state.answer);
			if (path.endsWith('/api')) return json({ items: [{ versions: [{ version: 'v1', resources: [pods] }] }] });
			if (path.endsWith('/apis')) return json({});
			return new Response('there is none', { status: 404 });
		};
		`+script+`
	})()`, &said, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	return said
}

// TestLessonsAreHeardOf by all who have asked while a question was under way or after one has failed, and by none who has left.
func TestLessonsAreHeardOf(t *testing.T) {
	for name, want := range map[string]struct{ answer, heard string }{
		"a question under way": {`state.lesson = () => new Promise((answer) => { state.give = () => answer(json({})); });
			offered(first); offered(left); forget(left); offered(second); state.give();`, "first second; asked 1"},
		"a failed question": {`state.lesson = () => new Response('', { status: 503 });
			offered(first); await until(() => state.timers.length); offered(second);
			state.lesson = () => json({}); state.timers.pop()();`, "first second; asked 2"},
	} {
		t.Run(name, func(t *testing.T) {
			said := openModules(t).runs(`const { forget, offered } = await import('./lessons.js'), heard = [];
				const first = () => heard.push('first'), second = () => heard.push('second'), left = () => heard.push('left');
				` + want.answer + `
				state.time = 1000;
				await until(() => offered(first).lessons);
				return heard.join(' ') + '; asked ' + state.asked;`)
			if said != want.heard {
				t.Errorf("%q, not %q", said, want.heard)
			}
		})
	}
}

// TestARefusedQuestionIsNotAskedAgain: a user who may not know what a cluster takes will not be told the next time either.
func TestARefusedQuestionIsNotAskedAgain(t *testing.T) {
	said := openModules(t).runs(`const { offered } = await import('./lessons.js');
		let read = 0;
		state.lesson = () => ({ ok: false, status: 403, text: async () => { read++; return 'not for you'; } });
		offered(() => {});
		await until(() => read);
		await new Promise((done) => later(done)); // what is done with the answer
		for (let i = 1; i < 4; i++) { state.time = i * 6000; offered(() => {}); }
		return 'asked ' + state.asked + ', waits ' + state.timers.length;`)
	if want := "asked 1, waits 0"; said != want {
		t.Errorf("%q, not %q", said, want)
	}
}

// TestAnObjectHasButtonsLate: its view begins while somebody else has asked, and shows them when the answer comes.
func TestAnObjectHasButtonsLate(t *testing.T) {
	said := openModules(t).runs(`const { offered } = await import('./lessons.js'), { objectView } = await import('./object.js');
		state.lesson = () => new Promise((answer) => { state.give = () => answer(json({ noClock: 'it has none' })); });
		offered(() => {});
		objectView(document.querySelector('main'), ['pods', 'default', 'web']);
		await until(() => document.querySelector('main .scroll p'));
		state.give();
		await until(() => offered(() => {}).lessons);
		return [...document.querySelectorAll('main button')].map((b) => b.textContent).join(' ');`)
	if want := "Kill Heal"; said != want {
		t.Errorf("%q, not %q", said, want)
	}
}

// TestAPodThatIsMadeAgain with its name on its node is another one: the former ends, and it comes.
func TestAPodThatIsMadeAgain(t *testing.T) {
	said := openModules(t).runs(`const { whatIfView } = await import('./whatif.js');
		const pod = (name, uid) => ({ namespace: 'default', name, uid, node: 'sim-1', ready: true });
		state.answer = { what: 'pod/db-0 is deleted', quiet: true, lasted: '9s', events: [], assumptions: [],
			states: { nodes: [{ name: 'sim-1' }], now: [pod('db-0', '1'), pod('db-1', '2')], then: [pod('db-0', '3'), pod('db-1', '2')] } };
		const main = document.querySelector('main');
		whatIfView(main);
		main.querySelector('#target').value = 'pod/db-0';
		main.querySelector('form').requestSubmit();
		await until(() => main.querySelector('.sides .cell'));
		return [...main.querySelectorAll('.sides .cell')].map((c) => c.title.replace('default/', '')).join('; ');`)
	want := "db-0: ready, is not there then; db-1: ready, stays; db-0: ready, is new; db-1: ready, stays"
	if said != want {
		t.Errorf("%q, not %q", said, want)
	}
}
