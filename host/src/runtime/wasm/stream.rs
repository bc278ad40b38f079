//! Answers of language models that come in pieces.

use futures::channel::mpsc;
use futures::{Stream, StreamExt};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};
use wasmtime::StoreContextMut;
use wasmtime::component::{FutureConsumer, Source, StreamConsumer, StreamResult};

use super::shared::{Pending, Place};
use super::{HostState, Inside, attributed, shared_id};
use crate::bindings::model::{
    Completion, CompletionRequest, CompletionSummary, Delta, Part, ToolCallArguments, ToolCallStart,
};
use crate::bindings::types::{CallContext, Error};
use crate::invoke::within;
use crate::load::Uses;
use crate::runtime::Failure;

/// How many pieces wait for a reader before the writer has to.
const BUFFER: usize = 16;

/// An answer that comes in pieces: a [`Stream`] of deltas, and then [`CompletionStream::finish`].
/// Dropping it tells the provider to stop.
pub struct CompletionStream {
    deltas: mpsc::Receiver<Delta>,
    end: End,
    patience: Option<Patience>,
    /// Who gives it.
    plugin: Option<Arc<str>>,
    /// Keeps the plugin, though it be replaced meanwhile.
    _uses: Option<Uses>,
}

/// How long the reader waits for each piece.
struct Patience {
    most: Duration,
    /// When the whole answer must be there, and how long that is from its beginning.
    end: Instant,
    total: Duration,
    sleep: Pin<Box<Sleep>>,
    lost: bool,
}

/// How the end of an answer is learnt.
enum End {
    /// It was there at once.
    Known(CompletionSummary),
    /// The provider writes it after the last piece.
    Awaited { summary: oneshot::Receiver<Result<CompletionSummary, Error>>, call: Pending<()> },
}

impl CompletionStream {
    /// Reads what is left of the answer and says how it ended.
    ///
    /// # Errors
    ///
    /// The provider's own error, or why it could not finish.
    pub async fn finish(mut self) -> Result<CompletionSummary, Failure> {
        while self.next().await.is_some() {}
        let patience = self.patience.map(|patience| (patience.most, patience.lost));
        if let Some((most, true)) = patience {
            return Err(Failure::Deadline(most));
        }
        match self.end {
            End::Known(summary) => Ok(summary),
            End::Awaited { summary, call } => {
                let most = patience.map_or(Duration::MAX, |(most, _)| most);
                let (summary, ended) = within(most, async {
                    let summary = summary.await;
                    // Learns of a trap that cut the answer off.
                    Ok((summary, call.wait().await))
                })
                .await?;
                ended?;
                match summary {
                    Ok(summary) => summary.map_err(Failure::Answered),
                    Err(_) => Err(Failure::Contract("the answer ended without a summary".into())),
                }
            }
        }
    }
}

impl CompletionStream {
    /// Ends the stream when a piece takes longer than `most` to come, or all of them together
    /// longer than `total`.
    pub(crate) fn with_patience(mut self, most: Duration, total: Duration) -> Self {
        let end = Instant::now() + total;
        let sleep = Box::pin(sleep(most.min(total)));
        self.patience = Some(Patience { most, end, total, sleep, lost: false });
        self
    }

    /// The plugin that gives the answer, where a platform had it begun.
    pub fn plugin(&self) -> Option<&Arc<str>> {
        self.plugin.as_ref()
    }

    /// Names the plugin, and keeps it for as long as the stream is there.
    pub(crate) fn of(self, plugin: Arc<str>, uses: Uses) -> Self {
        Self { plugin: Some(plugin), _uses: Some(uses), ..self }
    }
}

impl Stream for CompletionStream {
    type Item = Delta;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delta>> {
        let Self { deltas, patience, .. } = &mut *self;
        if patience.as_ref().is_some_and(|patience| patience.lost) {
            return Poll::Ready(None);
        }
        let polled = deltas.poll_next_unpin(cx);
        let Some(patience) = patience else { return polled };
        match polled {
            Poll::Ready(_) => {
                let now = Instant::now();
                if now >= patience.end {
                    patience.most = patience.total;
                    patience.lost = true;
                    return Poll::Ready(None);
                }
                patience.sleep.as_mut().reset((now + patience.most).min(patience.end));
            }
            Poll::Pending if patience.sleep.as_mut().poll(cx).is_ready() => {
                patience.lost = true;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        polled
    }
}

impl From<Completion> for CompletionStream {
    /// The whole answer as one piece for each of its parts. What only a whole answer can say
    /// (media, for instance) is not in the deltas.
    fn from(completion: Completion) -> Self {
        let mut pieces = Vec::new();
        let mut calls = 0;
        for part in completion.parts {
            match part {
                Part::Text(text) => pieces.push(Delta::Text(text)),
                Part::Reasoning(reasoning) => pieces.push(Delta::Reasoning(reasoning.text)),
                Part::ToolCall(call) => {
                    let index = calls;
                    calls += 1;
                    let start = ToolCallStart { index, id: call.id, name: call.name };
                    let arguments = ToolCallArguments { index, fragment: call.arguments };
                    pieces.push(Delta::ToolCallStart(start));
                    pieces.push(Delta::ToolCallArguments(arguments));
                }
                Part::Image(_) | Part::Audio(_) | Part::ToolAnswer(_) | Part::Other(_) => {}
            }
        }
        let (mut sender, deltas) = mpsc::channel(pieces.len());
        for piece in pieces {
            sender.try_send(piece).expect("the channel was made to hold them all");
        }
        Self {
            deltas,
            end: End::Known(completion.summary),
            patience: None,
            plugin: None,
            _uses: None,
        }
    }
}

/// Asks an instance for an answer, and connects its stream to a reader.
pub(super) async fn open(
    place: Place,
    request: CompletionRequest,
    context: CallContext,
) -> Result<CompletionStream, Failure> {
    let (pieces, deltas) = mpsc::channel(BUFFER);
    let (end, summary) = oneshot::channel();
    let (started, begun) = oneshot::channel();
    let call_id = shared_id(&context);
    let work = async move |inside: Arc<Inside>| {
        let Inside { accessor, exports } = &*inside;
        let answer = exports.stream(accessor, request, context).await?;
        let (stream, future) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let _ = started.send(Err(error));
                return Ok(());
            }
        };
        let (finished, ended) = oneshot::channel();
        accessor.with(|mut store| {
            stream.pipe(&mut store, Pieces(pieces))?;
            future.pipe(&mut store, Summary { end: Some(end), _finished: finished })
        })?;
        let _ = started.send(Ok(()));
        // The call is not over before the answer is.
        let _ = ended.await;
        Ok(())
    };
    let call = place.submit(attributed(Some(call_id), work));
    match begun.await {
        Ok(Ok(())) => {
            let end = End::Awaited { summary, call };
            Ok(CompletionStream { deltas, end, patience: None, plugin: None, _uses: None })
        }
        Ok(Err(error)) => {
            call.wait().await?;
            Err(Failure::Answered(error))
        }
        Err(_) => match call.wait().await {
            Err(failure) => Err(failure),
            Ok(()) => Err(Failure::Host("the answer never began".into())),
        },
    }
}

/// Takes the pieces of an answer out of the guest, no faster than they are read.
struct Pieces(mpsc::Sender<Delta>);

impl StreamConsumer<HostState> for Pieces {
    type Item = Delta;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        store: StoreContextMut<'_, HostState>,
        mut source: Source<'_, Delta>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        match self.0.poll_ready(cx) {
            Poll::Pending if finish => Poll::Ready(Ok(StreamResult::Cancelled)),
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(Ok(StreamResult::Dropped)),
            Poll::Ready(Ok(())) => {
                let mut piece = None;
                source.read(store, &mut piece)?;
                if let Some(piece) = piece
                    && self.0.start_send(piece).is_err()
                {
                    return Poll::Ready(Ok(StreamResult::Dropped));
                }
                Poll::Ready(Ok(StreamResult::Completed))
            }
        }
    }
}

/// Takes the summary out of the guest. Going away, it says that the answer is over.
struct Summary {
    end: Option<oneshot::Sender<Result<CompletionSummary, Error>>>,
    _finished: oneshot::Sender<()>,
}

impl FutureConsumer<HostState> for Summary {
    type Item = Result<CompletionSummary, Error>;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        store: StoreContextMut<'_, HostState>,
        mut source: Source<'_, Self::Item>,
        _: bool,
    ) -> Poll<wasmtime::Result<()>> {
        let mut summary = None;
        source.read(store, &mut summary)?;
        if let (Some(summary), Some(end)) = (summary, self.end.take()) {
            let _ = end.send(summary);
        }
        Poll::Ready(Ok(()))
    }
}
