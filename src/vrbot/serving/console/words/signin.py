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
        "no accounts text": "Make the first administrator here, with the code the server printed as it started.",
        "set up": "First account",
        "code": "Set-up code",
        "set up enter": "Make the account",
        "set up refused": "Check the code; a name has 2 to 64 of a-z 0-9 . _ @ -, a password at least 10 characters.",
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
        "no accounts text": "请用服务器启动时显示的代码，在此创建第一个管理员账号。",
        "set up": "首个账号",
        "code": "设置代码",
        "set up enter": "创建账号",
        "set up refused": "未能创建：请检查代码；用户名为 2 至 64 个 a-z 0-9 . _ @ -，密码至少 10 个字符。",
    },
}
