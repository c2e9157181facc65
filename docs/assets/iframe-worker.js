/* Search where the site is read from a folder. Browsers start no worker there, so the script of the search runs in a hidden frame,
   which behaves like one. The name of the class is the one that the search asks for. */
if (location.protocol === "file:") {
  window.IFrameWorker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => added(inside.document, next)), Promise.resolve());
      this.loaded = added(inside.document, url);
    }

    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  const added = (page, src) =>
    new Promise((resolve, reject) => {
      const script = Object.assign(page.createElement("script"), { src, onload: resolve, onerror: reject });
      page.body.append(script);
    });
  window.Worker = window.IFrameWorker;
}
