"""The sign-in page."""

from __future__ import annotations

from vrbot.serving.console.words import Table

WORDS: Table = {
    "en": {
        "sign in": "Sign in",
        "sign in text": "Drafts with reasons. Nothing is sent without your approval.",
        "name": "Name",
        "password": "Password",
        "enter": "Sign in",
        "refused": "Name and password do not belong together, or the account is disabled.",
        "slow down": "Too many attempts. Wait a minute, then try again.",
        "unreachable": "The server cannot be reached. Try again.",
        "no accounts": "No account has been made yet",
        "no accounts text": "Whoever runs this server can make the first one with: vrbot users add NAME --role admin",
    },
    "zh": {
        "sign in": "登录",
        "sign in text": "草稿附带依据，未经您批准不会发送。",
        "name": "用户名",
        "password": "密码",
        "enter": "登录",
        "refused": "用户名与密码不匹配，或账号已停用。",
        "slow down": "尝试次数过多，请一分钟后再试。",
        "unreachable": "无法连接服务器，请重试。",
        "no accounts": "还没有任何账号",
        "no accounts text": "服务器管理者可用以下命令创建第一个账号：vrbot users add NAME --role admin",
    },
}
