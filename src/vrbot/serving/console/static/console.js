/* What only the browser can do: keys, input methods, texts that outlive a reload, choices kept in cookies. */
window.vrbot = (() => {
  const YEAR = 31536000;
  const typing = (element) => element && (/^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.isContentEditable);
  const composing = (event) => event.isComposing || event.keyCode === 229;
  const shown = (element) => element.offsetParent !== null && !element.disabled;
  const kept = (box) => `vrbot:${box.dataset.keep}`;

  function setCookie(name, value) {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `${name}=${value}; path=/; max-age=${YEAR}; samesite=lax${secure}`;
  }

  function choose(name, value) {
    setCookie(name, value);
    const address = new URL(location.href);
    address.searchParams.delete("language");
    location.replace(address);
  }

  function nextTheme(name) {
    const order = ["light", "dark", "auto"];
    const found = document.cookie.match(new RegExp(`${name}=(\\w+)`));
    const next = order[(order.indexOf(found ? found[1] : "auto") + 1) % order.length];
    setCookie(name, next);
    Quasar.Dark.set(next === "auto" ? "auto" : next === "dark");
  }

  function newName() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /* Texts that are being written live in this tab's session storage until the server has them. */
  function restore(box) {
    if (box.dataset.restored) return;
    box.dataset.restored = "1";
    box.value = sessionStorage.getItem(kept(box)) ?? box.dataset.initial ?? "";
    if (box.dataset.focus) {
      box.focus();
      box.setSelectionRange(box.value.length, box.value.length);
    }
  }

  function message(inside) {
    const box = inside.closest("[data-composer]").querySelector("textarea");
    if (!box.value.trim() || box.dataset.sending === box.value) return null;
    box.dataset.sending = box.value;
    const names = `${kept(box)}:id`;
    let name = sessionStorage.getItem(names);
    if (!name) sessionStorage.setItem(names, (name = newName()));
    return { text: box.value, id: name };
  }

  function sent(composer, text, good) {
    const box = document.querySelector(`[data-composer="${composer}"] textarea`);
    if (!box) return;
    delete box.dataset.sending;
    if (!good) return; // it may be stored all the same: sent again under its id it is the same message
    sessionStorage.removeItem(`${kept(box)}:id`);
    if (box.value === text) {
      box.value = "";
      sessionStorage.removeItem(kept(box));
    }
  }

  function forget(keep) {
    sessionStorage.removeItem(`vrbot:${keep}`);
    sessionStorage.removeItem(`vrbot:${keep}:id`);
  }

  /* Approval names the text as it stands on the screen, not as the server believes it does. */
  function draftSeen(inside) {
    const draft = inside.closest("[data-draft-card]").querySelector("[data-draft-text]");
    return { draft: draft.dataset.draftText, text: draft.textContent };
  }

  async function signIn(form, problem) {
    const answer = await fetch(form.dataset.action, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(Object.fromEntries(new FormData(form))),
    }).catch(() => null);
    if (answer && answer.ok) return location.assign(form.dataset.next);
    problem(answer === null ? "unreachable" : answer.status === 429 ? "slow down" : "refused");
  }

  async function signOut() {
    await fetch("/api/v1/sign-out", { method: "POST" }).catch(() => null);
    location.assign("/sign-in");
  }

  document.addEventListener("keydown", (event) => {
    if (composing(event)) return;
    const box = event.target.closest?.("[data-composer] textarea");
    if (box && event.key === "Enter" && !event.shiftKey) {
      const wantsModifier = box.dataset.sends === "ctrl";
      if (wantsModifier && !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      box.closest("[data-composer]").querySelector("[data-send]").click();
      return;
    }
    if (box && event.key === "Escape") box.closest("[data-composer]").querySelector("[data-cancel]")?.click();
    if (typing(event.target) || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const dialog = document.querySelector(".q-dialog");
    const wanted = (dialog || document).querySelectorAll(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
    const button = Array.from(wanted).find(shown);
    if (button) {
      event.preventDefault();
      button.click();
    }
  });

  document.addEventListener("input", (event) => {
    const box = event.target;
    if (!box.dataset?.keep) return;
    sessionStorage.setItem(kept(box), box.value);
    sessionStorage.removeItem(`${kept(box)}:id`); // another text is another message
  });

  const ends = new WeakSet();
  function follow(list) {
    if (ends.has(list)) return;
    ends.add(list);
    const toEnd = () => (list.scrollTop = list.scrollHeight);
    new MutationObserver(toEnd).observe(list, { childList: true, subtree: true });
    requestAnimationFrame(toEnd);
  }

  function look() {
    document.querySelectorAll("textarea[data-keep]").forEach(restore);
    document.querySelectorAll("[data-follow]").forEach(follow);
  }

  document.addEventListener("DOMContentLoaded", () => {
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
    look();
    const lost = { zh: ["连接已断开。", "正在重新连接……"], en: ["Connection lost.", "Trying to reconnect..."] };
    const spans = document.querySelectorAll("#popup span");
    const language = /vrbot_language=en/.test(document.cookie) ? "en" : "zh";
    lost[language].forEach((words, place) => spans[place] && (spans[place].textContent = words));
  });

  return { choose, nextTheme, message, sent, forget, draftSeen, signIn, signOut };
})();
