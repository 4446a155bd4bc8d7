// Closed lists of conversations and messages, apart from the routes so that stores need not load those.

export const conversationKinds = ['dm', 'channel'] as const

export const messageSources = ['in_app', 'slack', 'email'] as const
export type MessageSource = (typeof messageSources)[number]

export const authorTypes = ['user', 'agent', 'system'] as const
