// Closed lists of tasks, apart from the routes so that stores need not load those.

export const taskStatuses = ['open', 'in_progress', 'in_review', 'done', 'cancelled'] as const
export type TaskStatus = (typeof taskStatuses)[number]

export const taskPriorities = ['urgent', 'high', 'normal', 'low'] as const
