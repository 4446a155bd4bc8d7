export const asArgs = (settings: readonly string[]): string[] => settings.flatMap((setting) => ['-c', setting])

/** Nothing is sent to its maker. */
export const silent = ['check_for_update_on_startup=false', 'analytics.enabled=false']
