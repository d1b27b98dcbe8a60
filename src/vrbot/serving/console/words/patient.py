"""The patient's side of a consultation."""

from __future__ import annotations

from vrbot.serving.console.words import Table

WORDS: Table = {
    "en": {
        "title": "Your consultation",
        "subtitle": "A physician reads and answers every message.",
        "you": "You",
        "physician": "Physician",
        "hello": "Hello! How can we help you today?",
        "hello text": "Describe what troubles you: what, since when, how bad. A physician will answer here.",
        "write": "Write to the physician",
        "send": "Send",
        "enter sends": "Enter sends · Shift + Enter for a new line",
        "waiting": "The physician is looking at your message",
        "medicine": "A medicine named here is a suggestion, not a prescription.",
        "emergency": "In an emergency call your local emergency number at once.",
        "danger": "What you describe may be urgent. Do not wait here for an answer: call your local emergency number.",
        "closed": "This consultation has ended.",
        "closed text": "You can still read it here.",
        "too long": "The message is too long. Please send it in parts.",
        "too many": "Please wait a moment before you send more.",
        "gone": "This link does not work",
        "gone text": "Ask your clinic for a new one.",
        "unsent": "The message was not sent. Please try again.",
    },
    "zh": {
        "title": "在线问诊",
        "subtitle": "每条消息都由医生阅读并回复。",
        "you": "我",
        "physician": "医生",
        "hello": "您好！请问有什么可以帮您？",
        "hello text": "请描述您的不适：哪里不舒服、多久了、程度如何。医生会在这里回复您。",
        "write": "写给医生",
        "send": "发送",
        "enter sends": "Enter 发送 · Shift + Enter 换行",
        "waiting": "医生正在查看您的消息",
        "medicine": "文中提到的药物仅为建议，不是处方。",
        "emergency": "如遇紧急情况，请立即拨打 120。",
        "danger": "您描述的情况可能很紧急。请不要在此等待回复，立即拨打 120。",
        "closed": "本次问诊已结束。",
        "closed text": "您仍可在此查看记录。",
        "too long": "消息过长，请分几次发送。",
        "too many": "请稍等片刻再发送。",
        "gone": "链接无效",
        "gone text": "请向诊所索取新的链接。",
        "unsent": "消息未发送，请重试。",
    },
}
