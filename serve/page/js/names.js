export function shortCommand(command) {
    const words = command.split(" ");
    const base = (word) => word.slice(word.lastIndexOf("/") + 1);
    if (words.length > 1 && /^python[\d.]*$/.test(base(words[0])))
        words.shift();
    const program = words.findIndex((one) => !one.startsWith("-"));
    return words.map((one, i) => (i === program ? base(one) || one : one)).join(" ");
}
const program = (process) => (process.command ? shortCommand(process.command) : (process.name ?? "?"));
export const isRank = (process) => process.rank !== null && process.job !== null;
export function processName(process) {
    const rank = process.rank === null ? "" : isRank(process) ? `rank ${process.rank} · ` : `worker of rank ${process.rank} · `;
    return `${process.pid} · ${rank}${program(process)}`;
}
export function title(process) {
    return isRank(process) ? { name: `rank ${process.rank}`, more: `process ${process.pid} · ${program(process)}` } : { name: program(process), more: `process ${process.pid}` };
}
export function ranges(ranks) {
    const sorted = [...new Set(ranks)].sort((a, b) => a - b);
    const parts = [];
    for (let i = 0; i < sorted.length;) {
        let end = i;
        while (sorted[end + 1] === sorted[end] + 1)
            end++;
        parts.push(end === i ? `${sorted[i]}` : end === i + 1 ? `${sorted[i]}, ${sorted[end]}` : `${sorted[i]}–${sorted[end]}`);
        i = end + 1;
    }
    return parts.join(", ");
}
